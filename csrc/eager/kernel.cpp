// One boxed PrivateUse1 kernel for every operator: a plan, made once from the prototype, says how a call
// becomes the arguments of an aclnn function. The Python side is ascend_graph/eager/operators.py.
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/native/TypeProperties.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/Export.h>
#include <torch/csrc/utils/pybind.h>
#include <torch/library.h>

#include <algorithm>
#include <atomic>
#include <mutex>

#include "aclnn.h"
#include "autograd.h"
#include "invoke.h"
#include "shape_program.h"

namespace py = pybind11;

// Of torch/csrc/jit/python/pybind_utils.h the one function that is called: the header takes longer to compile
// than all others that are here.
namespace torch::jit {
TORCH_PYTHON_API py::object toPyObject(IValue ivalue);
}

namespace ascend_graph::eager {
namespace {

// ----------------------------------------------------------------------------------------------------------------
// plan

// The kinds of parameters that aclnn functions have.
enum class Kind : int64_t {
    kTensor,
    kTensorList,
    kInt,
    kFloat,
    kBool,
    kString,
    kInts,
    kFloats,
    kBools,
    kDtype,
    kOutput,
    kOutputList,
    kDtypes,
    kScalar,
    kFloat32,
    kHostOutput,
    kScalars
};

// A Python object that C++ holds beyond the interpreter's end.
class Held {
  public:
    Held() = default;
    explicit Held(py::object object) : object_(std::move(object)) {}
    Held(Held&&) = default;
    Held(const Held&) = delete;
    Held& operator=(Held&& other) noexcept {
        std::swap(object_, other.object_);
        return *this;
    }
    Held& operator=(const Held&) = delete;
    ~Held() {
        if (!object_) return;
        // Python may be gone when the last kernel goes.
        if (!Py_IsInitialized()) {
            object_.release();
            return;
        }
        py::gil_scoped_acquire gil;
        object_ = py::object();
    }
    explicit operator bool() const { return object_ && !object_.is_none(); }
    const py::object& operator*() const { return object_; }

  private:
    py::object object_;
};

struct Parameter {
    Kind kind;
    int64_t source;         // the schema argument, or the output; negative for a constant
    c10::IValue otherwise;  // what an argument None stands for, or the constant; None for an absent tensor
    // The values that a C integer may have; of host memory the bytes, and 0 for int, 1 for float, 2 for bool,
    // 3 for an int without sign.
    int64_t low, high;
    Held compute;  // what computes the value from all arguments by name; none for other parameters
    size_t computed = SIZE_MAX;  // its number among these
};

// An argument that the function has nothing for: it may only be None or this.
struct UnusedArgument {
    size_t position;
    c10::IValue only;
};

// A schema argument that is a tensor or a list of them.
struct TensorArgument {
    size_t position;
    uint64_t dtypes;     // those that the prototype allows: bits by the number of at::ScalarType
    std::string listed;  // the same, for messages
};

struct Plan {
    std::string op;  // ns::name, for messages
    std::string function;
    std::vector<Parameter> parameters;  // in the order of the aclnn function
    std::vector<UnusedArgument> unused;
    std::vector<TensorArgument> tensors;
    size_t outputs;
    bool checked;                        // whether a relation or a function says which inputs fit
    std::optional<ShapeProgram> shapes;  // without it, the meta function says what to allocate
    std::string declared;                // where the function is declared; empty where no header does
    Held confirm;         // None, or what is asked with the function's library before the first call
    size_t computed = 0;  // the number of parameters that are computed
};

// A Python exception class of ascend_graph.eager, raised across the dispatcher.
struct Errors {
    PyObject* failed = nullptr;   // an aclnn function returned an error
    PyObject* missing = nullptr;  // an aclnn function is in no library
    PyObject* argument = nullptr;
};
Errors errors;

[[noreturn]] void raise(PyObject* type, const std::string& message, std::optional<int> code = std::nullopt) {
    py::gil_scoped_acquire gil;
    py::object error = py::reinterpret_borrow<py::object>(type)(message);
    if (code) error.attr("code") = *code;
    PyErr_SetObject(type, error.ptr());
    python_error raised;
    raised.persist();
    throw raised;
}

// Raises a Python exception across the dispatcher.
[[noreturn]] void rethrow(py::error_already_set& error) {
    error.restore();
    python_error raised;
    raised.persist();
    throw raised;
}

// The arguments of a call by name, for Python.
py::dict by_name(const c10::OperatorHandle& op, at::ArrayRef<c10::IValue> arguments) {
    py::dict named;
    for (size_t n = 0; n < arguments.size(); ++n) {
        named[py::str(op.schema().arguments()[n].name())] = torch::jit::toPyObject(arguments[n]);
    }
    return named;
}

c10::IValue read_value(Kind kind, const py::handle& value);

std::string describe_value(const c10::IValue& value) {
    std::ostringstream text;
    if (value.isTensor()) {
        return describe(value.toTensor());
    } else if (value.isTensorList()) {
        text << '[';
        const auto list = value.toTensorVector();
        for (size_t n = 0; n < list.size() && n < 8; ++n) text << (n == 0 ? "" : ", ") << describe(list[n]);
        text << (list.size() > 8 ? ", …]" : "]");
    } else if (value.isBool()) {
        text << (value.toBool() ? "True" : "False");
    } else {
        text << value;
    }
    return text.str();
}

// --------------------------------------------------------------------------------------------------------------
// kernel

class Kernel : public c10::OperatorKernel {
  public:
    explicit Kernel(std::shared_ptr<const Plan> plan) : plan_(std::move(plan)) {}

    void operator()(const c10::OperatorHandle& op, c10::DispatchKeySet, torch::jit::Stack* stack) {
        const size_t count = op.schema().arguments().size();
        const at::ArrayRef<c10::IValue> arguments = torch::jit::last(*stack, count);
        const at::Device device = check_tensors(op, arguments);
        if (!plan_->unused.empty()) check_unused(op, arguments);
        const OnDevice on_device(device);
        Outputs outputs = allocate_outputs(op, arguments, device);
        try {
            launch_function(arguments, outputs, compute(op, arguments));
        } catch (const AclnnError& error) {
            raise(errors.failed, plan_->op + ": " + error.what() + shown(op, arguments), error.code);
        } catch (const MissingFunction& error) {
            raise(errors.missing, plan_->op + ": " + error.what() + declared());
        }
        torch::jit::drop(*stack, count);
        stack->insert(stack->end(), std::make_move_iterator(outputs.begin()),
                      std::make_move_iterator(outputs.end()));
    }

  private:
    using Outputs = c10::SmallVector<c10::IValue, 4>;

    static std::string shown(const c10::OperatorHandle& op, at::ArrayRef<c10::IValue> arguments) {
        std::string text = "\n  arguments:";
        for (size_t n = 0; n < arguments.size(); ++n) {
            text += (n == 0 ? " " : ", ") + op.schema().arguments()[n].name() + "=" +
                    describe_value(arguments[n]);
        }
        return text;
    }

    std::string declared() const {
        return plan_->declared.empty() ? "" : "\n  " + plan_->function + " is declared at " + plan_->declared;
    }

    [[noreturn]] void refuse(const std::string& what) const {
        raise(errors.argument, plan_->op + ": " + what);
    }

    // Device and dtype of all tensors; returns the device.
    at::Device check_tensors(const c10::OperatorHandle& op, at::ArrayRef<c10::IValue> arguments) const {
        std::optional<at::Device> device;
        for_each_tensor(arguments, [&](const at::Tensor& tensor, const TensorArgument&) {
            if (!device && tensor.is_privateuseone()) device = tensor.device();
        });
        if (!device)
            refuse("no argument is a tensor on an NPU; expected at least one" + shown(op, arguments));
        for_each_tensor(arguments, [&](const at::Tensor& tensor, const TensorArgument& argument) {
            const bool listed = (argument.dtypes >> static_cast<unsigned>(tensor.scalar_type()) & 1) != 0;
            if (listed && tensor.device() == *device) return;
            std::ostringstream text;
            text << "argument " << op.schema().arguments()[argument.position].name() << " is ";
            if (listed) {
                text << "on " << tensor.device() << "; all tensors must be on " << *device;
            } else {
                text << "torch." << c10::getDtypeNames(tensor.scalar_type()).first << "; allowed are "
                     << argument.listed;
            }
            refuse(text.str());
        });
        return *device;
    }

    void check_unused(const c10::OperatorHandle& op, at::ArrayRef<c10::IValue> arguments) const {
        for (const UnusedArgument& argument : plan_->unused) {
            const c10::IValue& value = arguments[argument.position];
            if (value.isNone() || (value.isTensor() && !value.toTensor().defined())) continue;
            if (!argument.only.isNone() && value == argument.only) continue;
            refuse("argument " + op.schema().arguments()[argument.position].name() + " is " +
                   describe_value(value) + ", but " + plan_->function + " has nothing for it; expected " +
                   describe_value(argument.only));
        }
    }

    template <typename Visit>
    void for_each_tensor(at::ArrayRef<c10::IValue> arguments, Visit&& visit) const {
        for (const TensorArgument& argument : plan_->tensors) {
            const c10::IValue& value = arguments[argument.position];
            if (value.isTensor()) {
                if (value.toTensor().defined()) visit(value.toTensor(), argument);
            } else if (value.isTensorList()) {
                for (const c10::IValue& element : value.toListRef()) {
                    if (element.toTensor().defined()) visit(element.toTensor(), argument);
                }
            }
        }
    }

    // ---- outputs

    Outputs allocate_outputs(const c10::OperatorHandle& op, at::ArrayRef<c10::IValue> arguments,
                             at::Device device) const {
        Outputs outputs;
        if (plan_->outputs == 0 && !plan_->checked) return outputs;
        if (!plan_->shapes || !allocate_by_program(arguments, device, outputs)) {
            outputs.clear();
            allocate_by_meta(op, arguments, device, outputs);
        }
        return outputs;
    }

    bool allocate_by_program(at::ArrayRef<c10::IValue> arguments, at::Device device, Outputs& outputs) const {
        c10::SmallVector<ShapeArgument, 16> seen(arguments.size());
        for (size_t n = 0; n < arguments.size(); ++n) {
            const c10::IValue& value = arguments[n];
            if (value.isTensor() && value.toTensor().defined()) {
                const at::Tensor& tensor = value.toTensor();
                seen[n] = {true, static_cast<int>(tensor.dim()), static_cast<int>(tensor.scalar_type()),
                           tensor.sizes().data(), 0};
            } else if (value.isInt()) {
                seen[n] = {true, 0, 0, nullptr, value.toInt()};
            } else if (value.isBool()) {
                seen[n] = {true, 0, 0, nullptr, value.toBool()};
            }
        }
        thread_local std::vector<OutputShape> shapes;
        if (!plan_->shapes->run(seen.data(), shapes)) return false;
        for (const OutputShape& shape : shapes) {
            if (shape.branch->kind == OutputKind::kAbsent) {
                outputs.emplace_back(at::Tensor());
                continue;
            }
            const std::optional<at::ScalarType> dtype = output_dtype(shape.branch->dtype, arguments, seen);
            if (!dtype) return false;
            const auto options = at::TensorOptions(device).dtype(*dtype);
            if (shape.branch->kind == OutputKind::kLike) {
                const at::Tensor& like = arguments[shape.branch->like].toTensor();
                outputs.emplace_back(like.is_contiguous() ? allocate(like.sizes(), options)
                                                          : at::empty_like(like, options));
            } else {
                outputs.emplace_back(allocate(shape.sizes, options));
            }
        }
        return true;
    }

    static std::optional<at::ScalarType> output_dtype(const DtypeRule& rule,
                                                      at::ArrayRef<c10::IValue> arguments,
                                                      const c10::SmallVectorImpl<ShapeArgument>& seen) {
        switch (rule.kind) {
            case DtypeKind::kFixed:
                return static_cast<at::ScalarType>(rule.values[0]);
            case DtypeKind::kFirstPresent:
                for (const int64_t n : rule.values) {
                    if (seen[n].present) return static_cast<at::ScalarType>(seen[n].dtype);
                }
                return std::nullopt;
            case DtypeKind::kArgument: {
                const ShapeArgument& argument = seen[rule.values[0]];
                // From 256 on torch_npu numbers dtypes that torch does not have.
                if (!argument.present || argument.value < 0 ||
                    argument.value >= static_cast<int64_t>(at::ScalarType::NumOptions))
                    return std::nullopt;
                return static_cast<at::ScalarType>(argument.value);
            }
            case DtypeKind::kPromote: {
                at::native::ResultTypeState state;
                for (const int64_t n : rule.values) {
                    if (!seen[n].present || !arguments[n].isTensor()) return std::nullopt;
                    state = at::native::update_result_type_state(arguments[n].toTensor(), state);
                }
                return at::native::result_type(state);
            }
        }
        return std::nullopt;
    }

    // Runs the operator on tensors without data: its meta function says, or explains what is wrong.
    void allocate_by_meta(const c10::OperatorHandle& op, at::ArrayRef<c10::IValue> arguments,
                          at::Device device, Outputs& outputs) const {
        const at::AutoDispatchBelowADInplaceOrView below_autograd;
        torch::jit::Stack stack(arguments.begin(), arguments.end());
        const auto bare = [](const at::Tensor& tensor) {
            if (!tensor.defined()) return tensor;
            return at::empty_strided(tensor.sizes(), tensor.strides(), tensor.options().device(at::kMeta));
        };
        for (const TensorArgument& argument : plan_->tensors) {
            c10::IValue& value = stack[argument.position];
            if (value.isTensor()) {
                value = bare(value.toTensor());
            } else if (value.isTensorList()) {
                c10::List<at::Tensor> list;
                for (const at::Tensor& tensor : value.toTensorVector()) list.push_back(bare(tensor));
                value = list;
            }
        }
        op.callBoxed(stack);
        const auto real = [device](const at::Tensor& meta) {
            if (!meta.defined()) return meta;
            return at::empty_strided(meta.sizes(), meta.strides(), meta.options().device(device));
        };
        for (const c10::IValue& result : stack) {
            if (result.isTensorList()) {
                c10::List<at::Tensor> list;
                for (const at::Tensor& meta : result.toTensorVector()) list.push_back(real(meta));
                outputs.emplace_back(list);
            } else {
                outputs.emplace_back(result.isTensor() ? real(result.toTensor()) : at::Tensor());
            }
        }
    }

    // ---- arguments

    using Computed = c10::SmallVector<c10::IValue, 2>;

    // The values that Python computes for this call.
    Computed compute(const c10::OperatorHandle& op, at::ArrayRef<c10::IValue> arguments) const {
        Computed values;
        if (plan_->computed == 0) return values;
        py::gil_scoped_acquire gil;
        try {
            for (const Parameter& parameter : plan_->parameters) {
                if (!parameter.compute) continue;
                values.push_back(read_value(parameter.kind, (*parameter.compute)(by_name(op, arguments))));
            }
        } catch (py::error_already_set& error) {
            rethrow(error);
        }
        return values;
    }

    void launch_function(at::ArrayRef<c10::IValue> arguments, const Outputs& outputs,
                         const Computed& computed) {
        const FunctionPtr& function = this->function();
        c10::SmallVector<HostOutput, 1> written;
        launch(
            function,
            [&](CallKey& key) {
                for (const Parameter& parameter : plan_->parameters) {
                    if (parameter.kind == Kind::kHostOutput) return key.add(&parameter);
                    visit(parameter, arguments, outputs, computed,
                          [&key](const auto& value) { add_to(key, value); });
                }
            },
            [&](Arguments& objects, uint64_t* workspace_size, aclOpExecutor** executor) {
                Invocation call;
                for (const Parameter& parameter : plan_->parameters) {
                    if (parameter.kind == Kind::kHostOutput) {
                        int64_t* memory = objects.add_memory();
                        if (parameter.source >= 0) written.push_back({parameter, memory, {}});
                        call.add(static_cast<const void*>(memory));
                        continue;
                    }
                    visit(parameter, arguments, outputs, computed, [&](const auto& value) {
                        const auto made = add_to(objects, value);
                        if constexpr (std::is_same_v<std::decay_t<decltype(value)>, Dtype>) {
                            call.add(ranged(parameter, made));
                        } else if constexpr (std::is_pointer_v<decltype(made)>) {
                            call.add(static_cast<const void*>(made));
                        } else {
                            call.add(made);
                        }
                    });
                }
                call.add(static_cast<const void*>(workspace_size));
                call.add(static_cast<const void*>(executor));
                const int error = call.call(function->get_workspace_size);
                // The first phase writes host memory; the second one only has the executor.
                for (HostOutput& output : written) output.value = output.read();
                return error;
            });
        for (const HostOutput& output : written) {
            const at::Tensor& result = outputs[output.parameter.source].toTensor();
            if (result.numel() != 1)
                refuse("the function gives one number; expected an output of one element, got " +
                       describe(result));
            result.fill_(output.value);
        }
    }

    // A number that the function writes into host memory.
    struct HostOutput {
        const Parameter& parameter;
        const int64_t* memory;
        at::Scalar value;

        template <typename T>
        T as() const {
            T value;
            std::memcpy(&value, memory, sizeof(value));
            return value;
        }
        at::Scalar read() const {
            const int64_t width = parameter.low;
            if (parameter.high == 1) return width == 4 ? static_cast<double>(as<float>()) : as<double>();
            if (parameter.high == 2) return as<bool>();
            const bool is_signed = parameter.high == 0;
            switch (width) {
                case 1:
                    return is_signed ? int64_t{as<int8_t>()} : int64_t{as<uint8_t>()};
                case 2:
                    return is_signed ? int64_t{as<int16_t>()} : int64_t{as<uint16_t>()};
                case 4:
                    return is_signed ? int64_t{as<int32_t>()} : int64_t{as<uint32_t>()};
                default:
                    return as<int64_t>();
            }
        }
    };

    int64_t ranged(const Parameter& parameter, int64_t value) const {
        if (value >= parameter.low && value <= parameter.high) return value;
        refuse(std::to_string(value) + " does not fit a parameter of " + plan_->function + "; expected " +
               std::to_string(parameter.low) + " to " + std::to_string(parameter.high));
    }

    float narrowed(double value) const {
        if (float32_holds(value)) return static_cast<float>(value);
        std::ostringstream text;
        text << value << " does not fit a parameter of " << plan_->function
             << "; expected a number that float32 holds: -3.4028235e+38 to 3.4028235e+38, inf or nan";
        refuse(text.str());
    }

    // A list of tensors, told from other vectors.
    struct Tensors {
        const std::vector<at::Tensor>& values;
    };
    template <typename Target, typename T>
    static auto add_to(Target& target, const T& value) {
        if constexpr (std::is_same_v<T, Tensors>) {
            return target.add_list(value.values);
        } else {
            return target.add(value);
        }
    }

    // Calls `see(value)` with what goes to a parameter of the function.
    template <typename See>
    void visit(const Parameter& parameter, at::ArrayRef<c10::IValue> arguments, const Outputs& outputs,
               const Computed& computed, See&& see) const {
        const bool is_output = parameter.kind == Kind::kOutput || parameter.kind == Kind::kOutputList;
        const c10::IValue& given = parameter.computed != SIZE_MAX ? computed[parameter.computed]
                                   : parameter.source < 0         ? parameter.otherwise
                                   : is_output                    ? outputs[parameter.source]
                                                                  : arguments[parameter.source];
        const c10::IValue& value = given.isNone() ? parameter.otherwise : given;
        if (value.isNone()) return see(nullptr);
        switch (parameter.kind) {
            case Kind::kTensor:
            case Kind::kOutput:
                return see(value.toTensor());
            case Kind::kTensorList:
            case Kind::kOutputList:
                return see(Tensors{value.toTensorVector()});
            case Kind::kInt:
                return see(ranged(parameter, value.toInt()));
            case Kind::kFloat:
                return see(value.toDouble());
            case Kind::kFloat32:
                return see(narrowed(value.toDouble()));
            case Kind::kScalar:
                return see(value.toScalar());
            case Kind::kScalars: {
                std::vector<at::Scalar> numbers;
                for (const c10::IValue& number : value.toListRef()) numbers.push_back(number.toScalar());
                return see(at::ArrayRef<at::Scalar>(numbers));
            }
            case Kind::kBool:
                return see(value.toBool());
            case Kind::kString:
                return see(value.toStringView());
            case Kind::kInts:
                return see(at::IntArrayRef(value.toIntVector()));
            case Kind::kFloats: {
                const std::vector<double> numbers = value.toDoubleVector();
                for (const double number : numbers) narrowed(number);  // an aclFloatArray has 32 bits
                return see(at::ArrayRef<double>(numbers));
            }
            case Kind::kBools:
                return see(value.toBoolList());
            case Kind::kDtype:
                return see(Dtype{value.toInt()});
            case Kind::kDtypes:
                return see(Dtypes{value.toIntVector()});
            case Kind::kHostOutput:
                break;  // has memory of its own
        }
    }

    // Looked up by the first call; again by the next one if it was missing, for a package may be selected
    // later.
    const FunctionPtr& function() {
        if (!found_.load(std::memory_order_acquire)) {
            // Outside of the lock: a thread that waits for it may hold what Python waits for.
            const FunctionPtr found = find_function(plan_->function);
            confirm(*found);
            const std::lock_guard<std::mutex> lock(finding_);
            if (function_ == nullptr) function_ = found;
            found_.store(true, std::memory_order_release);
        }
        return function_;
    }

    // Asks whether the function may be called as planned, where no header said so.
    void confirm(const Function& function) const {
        py::gil_scoped_acquire gil;
        if (!plan_->confirm) return;
        try {
            (*plan_->confirm)(library_of(function.get_workspace_size));
        } catch (py::error_already_set& error) {
            rethrow(error);
        }
    }

    std::shared_ptr<const Plan> plan_;
    std::mutex finding_;
    std::atomic<bool> found_{false};
    FunctionPtr function_;
};

// Several functions for one operator: Python chooses the one of a call.
class Choice : public c10::OperatorKernel {
  public:
    Choice(std::vector<std::unique_ptr<Kernel>> kernels, Held choose)
        : kernels_(std::move(kernels)), choose_(std::move(choose)) {}

    void operator()(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
        const size_t count = op.schema().arguments().size();
        (*kernels_.at(chosen(op, torch::jit::last(*stack, count))))(op, keys, stack);
    }

  private:
    size_t chosen(const c10::OperatorHandle& op, at::ArrayRef<c10::IValue> arguments) const {
        py::gil_scoped_acquire gil;
        try {
            return (*choose_)(by_name(op, arguments)).cast<size_t>();
        } catch (py::error_already_set& error) {
            rethrow(error);
        }
    }

    std::vector<std::unique_ptr<Kernel>> kernels_;
    Held choose_;
};

// -------------------------------------------------------------------------------------------------------
// Python's side

// A registration for one dispatch key, taken back by `close` or with the last reference.
class Registration {
  public:
    Registration(const std::string& ns, const std::string& name, c10::DispatchKey key,
                 torch::CppFunction function)
        : library_(std::in_place, torch::Library::IMPL, ns, key, __FILE__, __LINE__) {
        library_->impl(name.c_str(), std::move(function));
    }
    void close() { library_.reset(); }

  private:
    std::optional<torch::Library> library_;
};

using Items = std::vector<std::pair<int64_t, int64_t>>;

std::vector<ShapeItem> read_items(const py::handle& items) {
    std::vector<ShapeItem> read;
    for (const auto& [kind, value] : items.cast<Items>())
        read.push_back({static_cast<ItemKind>(kind), value});
    return read;
}

// Reads what ascend_graph/eager/shape_code.py writes.
ShapeProgram read_program(const py::object& code) {
    ShapeProgram program;
    program.slots = code.attr("slots").cast<size_t>();
    if (program.slots > ShapeProgram::kSlots)
        throw py::value_error("a shape program needs " + std::to_string(program.slots) +
                              " slots; expected at most " + std::to_string(ShapeProgram::kSlots));
    for (const py::handle input : code.attr("inputs")) {
        const py::object items = input.attr("items");
        program.inputs.push_back({input.attr("argument").cast<int64_t>(), items.is_none(),
                                  items.is_none() ? std::vector<ShapeItem>{} : read_items(items)});
    }
    for (const py::handle check : code.attr("checks")) {
        program.checks.push_back({check.attr("same").cast<std::vector<int64_t>>(),
                                  check.attr("argument").cast<int64_t>(),
                                  check.attr("among").cast<std::vector<int64_t>>()});
    }
    for (const auto& [slot, node] : code.attr("clauses").cast<Items>())
        program.clauses.push_back({slot, node});
    for (const auto& [kind, a, b, c] :
         code.attr("nodes").cast<std::vector<std::tuple<int64_t, int64_t, int64_t, int64_t>>>()) {
        program.nodes.push_back({static_cast<NodeKind>(kind), a, b, c});
    }
    for (const py::handle branches : code.attr("outputs")) {
        auto& output = program.outputs.emplace_back();
        for (const py::handle branch : branches) {
            const py::object dtype = branch.attr("dtype");
            output.push_back({branch.attr("condition").cast<int64_t>(),
                              static_cast<OutputKind>(branch.attr("kind").cast<int64_t>()),
                              branch.attr("like").cast<int64_t>(),
                              read_items(branch.attr("items")),
                              {static_cast<DtypeKind>(dtype.attr("kind").cast<int64_t>()),
                               dtype.attr("values").cast<std::vector<int64_t>>()}});
        }
    }
    return program;
}

c10::IValue read_default(Kind kind, const py::handle& value) {
    if (value.is_none()) return {};
    switch (kind) {
        case Kind::kInt:
        case Kind::kDtype:
            return value.cast<int64_t>();
        case Kind::kFloat:
            return value.cast<double>();
        case Kind::kBool:
            return value.cast<bool>();
        case Kind::kString:
            return value.cast<std::string>();
        case Kind::kFloat32:
            return value.cast<double>();
        case Kind::kScalar:
            if (py::isinstance<py::bool_>(value)) return value.cast<bool>();
            if (py::isinstance<py::int_>(value)) return value.cast<int64_t>();
            return value.cast<double>();
        case Kind::kScalars: {
            c10::impl::GenericList numbers(c10::NumberType::get());
            for (const py::handle number : value) numbers.push_back(read_default(Kind::kScalar, number));
            return numbers;
        }
        case Kind::kInts:
        case Kind::kDtypes:
            return value.cast<std::vector<int64_t>>();
        case Kind::kFloats:
            return value.cast<std::vector<double>>();
        case Kind::kBools:
            return value.cast<std::vector<bool>>();
        default:
            throw py::value_error("a tensor must not have a default");
    }
}

// What Python computed for a parameter: tensors, too.
c10::IValue read_value(Kind kind, const py::handle& value) {
    if (kind == Kind::kTensor && !value.is_none()) return value.cast<at::Tensor>();
    if (kind == Kind::kTensorList && !value.is_none()) {
        c10::List<at::Tensor> tensors;
        for (const py::handle tensor : value) tensors.push_back(tensor.cast<at::Tensor>());
        return tensors;
    }
    return read_default(kind, value);
}

std::shared_ptr<const Plan> read_plan(const std::string& ns, const std::string& name,
                                      const py::handle& description) {
    auto plan = std::make_shared<Plan>();
    plan->op = ns + "::" + name;
    plan->function = description.attr("function").cast<std::string>();
    plan->outputs = description.attr("outputs").cast<size_t>();
    plan->checked = description.attr("checked").cast<bool>();
    for (const py::handle tensor : description.attr("tensors")) {
        plan->tensors.push_back({tensor.attr("position").cast<size_t>(),
                                 tensor.attr("dtypes").cast<uint64_t>(),
                                 tensor.attr("listed").cast<std::string>()});
    }
    for (const py::handle parameter : description.attr("parameters")) {
        const auto kind = static_cast<Kind>(parameter.attr("kind").cast<int64_t>());
        plan->parameters.push_back({kind, parameter.attr("source").cast<int64_t>(),
                                    read_default(kind, parameter.attr("default")),
                                    parameter.attr("low").cast<int64_t>(),
                                    parameter.attr("high").cast<int64_t>(), Held(parameter.attr("compute"))});
        if (plan->parameters.back().compute) plan->parameters.back().computed = plan->computed++;
    }
    for (const py::handle unused : description.attr("unused")) {
        const auto kind = static_cast<Kind>(unused.attr("kind").cast<int64_t>());
        plan->unused.push_back(
            {unused.attr("position").cast<size_t>(), read_default(kind, unused.attr("default"))});
    }
    plan->declared = description.attr("declared").cast<std::string>();
    plan->confirm = Held(description.attr("confirm"));
    const py::object shapes = description.attr("shapes");
    if (!shapes.is_none()) plan->shapes = read_program(shapes);
    return plan;
}

// One plan for each function that the operator calls, and what chooses among several.
std::unique_ptr<Registration> register_kernel(const std::string& ns, const std::string& name,
                                              const py::sequence& descriptions, py::object choose) {
    std::vector<std::unique_ptr<Kernel>> kernels;
    for (const py::handle description : descriptions)
        kernels.push_back(std::make_unique<Kernel>(read_plan(ns, name, description)));
    auto function = kernels.size() == 1 ? torch::CppFunction::makeFromBoxedFunctor(std::move(kernels[0]))
                                        : torch::CppFunction::makeFromBoxedFunctor(std::make_unique<Choice>(
                                              std::move(kernels), Held(std::move(choose))));
    return std::make_unique<Registration>(ns, name, c10::DispatchKey::PrivateUse1, std::move(function));
}

// What autograd sees of an operator that has no gradient.
std::unique_ptr<Registration> register_no_gradient(const std::string& ns, const std::string& name) {
    return std::make_unique<Registration>(ns, name, c10::DispatchKey::Autograd, autograd_no_gradient());
}

// The version counters of what an operator writes.
std::unique_ptr<Registration> register_bump_versions(const std::string& ns, const std::string& name) {
    return std::make_unique<Registration>(ns, name, c10::DispatchKey::ADInplaceOrView, bump_versions());
}

}  // namespace
}  // namespace ascend_graph::eager

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
    using namespace ascend_graph::eager;
    py::class_<Registration>(m, "Registration").def("close", &Registration::close);
    m.def("register_kernel", &register_kernel);
    // The library that has an aclnn function; empty if none has it now.
    m.def("library_of", [](const std::string& name) -> std::string {
        std::string report;
        void* const function = ascend_graph::eager::detail::find(name + "GetWorkspaceSize", report);
        return function == nullptr ? "" : library_of(function);
    });
    m.def("register_no_gradient", &register_no_gradient);
    m.def("has_tangent", [](const std::vector<at::Tensor>& tensors) {
        return std::any_of(tensors.begin(), tensors.end(), has_tangent);
    });
    m.def("register_bump_versions", &register_bump_versions);
    m.def("set_errors", [](py::object failed, py::object missing, py::object argument) {
        errors = {failed.release().ptr(), missing.release().ptr(), argument.release().ptr()};
    });
}
