"""Executors of aclnn functions that run more than once, with tensors at other addresses."""

from __future__ import annotations

import ctypes

import pytest
import torch

from ascend_graph.environment import toolkit_directory

FLOAT, INT64 = 0, 9


class Library:
    """libopapi with the executor of one aclnnRmsNorm or another first phase."""

    def __init__(self) -> None:
        torch.npu.init()
        lib64 = toolkit_directory() / "lib64"
        self.opapi = ctypes.CDLL(str(lib64 / "libopapi.so"))
        for name in ("aclCreateTensor", "aclCreateTensorList"):
            getattr(self.opapi, name).restype = ctypes.c_void_p
        self.acl = ctypes.CDLL(str(lib64 / "libascendcl.so"))
        self.acl.aclGetRecentErrMsg.restype = ctypes.c_char_p

    def tensor(self, t: torch.Tensor, offset: int = 0) -> ctypes.c_void_p:
        sizes, strides = (ctypes.c_int64 * t.dim())(*t.shape), (ctypes.c_int64 * t.dim())(*t.stride())
        rank, dtype = ctypes.c_uint64(t.dim()), INT64 if t.dtype is torch.int64 else FLOAT
        storage, count = (ctypes.c_int64 * 1)(t.untyped_storage().size() // t.element_size()), ctypes.c_uint64(1)
        data = ctypes.c_void_p(t.data_ptr() - offset * t.element_size())
        made = self.opapi.aclCreateTensor(sizes, rank, dtype, strides, ctypes.c_int64(offset), 2, storage, count, data)
        return ctypes.c_void_p(made)

    def first_phase(self, function: str, *arguments: object) -> ctypes.c_void_p:
        size, executor = ctypes.c_uint64(), ctypes.c_void_p()
        phase = getattr(self.opapi, f"{function}GetWorkspaceSize")
        assert phase(*arguments, ctypes.byref(size), ctypes.byref(executor)) == 0, self.error()
        return executor

    def move(self, executor: object, tensor: object, data: torch.Tensor | None, kind: str = "", index: int = 0) -> int:
        address = ctypes.c_void_p(None if data is None else data.data_ptr())
        return getattr(self.opapi, f"aclSet{kind}TensorAddr")(executor, ctypes.c_size_t(index), tensor, address)

    def error(self) -> str:
        return self.acl.aclGetRecentErrMsg().decode()


@pytest.fixture(scope="module")
def library() -> Library:
    return Library()


@pytest.fixture
def stream(library: Library) -> ctypes.c_void_p:
    made = ctypes.c_void_p()
    assert library.acl.aclrtCreateStream(ctypes.byref(made)) == 0
    return made


def norm(x: torch.Tensor) -> torch.Tensor:
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6)


def test_each_run_has_the_addresses_that_were_set_before_it(library: Library, stream: ctypes.c_void_p) -> None:
    xs, ys = [torch.randn(3, 8) for _ in range(3)], [torch.empty(3, 8) for _ in range(3)]
    gamma, rstd = torch.ones(8), torch.empty(3, 1)
    x, g, y, r = (library.tensor(t) for t in (xs[0], gamma, ys[0], rstd))
    executor = library.first_phase("aclnnRmsNorm", x, g, ctypes.c_double(1e-6), y, r)
    assert library.opapi.aclSetAclOpExecutorRepeatable(executor) == 0
    assert library.opapi.aclnnRmsNorm(None, ctypes.c_uint64(), executor, stream) == 0, library.error()
    for given, out in zip(xs[1:], ys[1:], strict=True):
        assert library.move(executor, x, given, "Input") == 0, library.error()
        assert library.move(executor, y, out, "Output") == 0, library.error()
        assert library.opapi.aclnnRmsNorm(None, ctypes.c_uint64(), executor, stream) == 0, library.error()
    address = ctypes.c_void_p()
    assert library.opapi.aclGetRawTensorAddr(y, ctypes.byref(address)) == 0
    assert address.value == ys[-1].data_ptr()
    # Runs that wait in the stream do not need it.
    assert library.opapi.aclDestroyAclOpExecutor(executor) == 0
    assert library.acl.aclrtSynchronizeStream(stream) == 0
    for given, out in zip(xs, ys, strict=True):
        torch.testing.assert_close(out, norm(given))


def test_a_run_has_the_contents_of_its_time(library: Library) -> None:
    x, gamma, y, rstd = torch.randn(3, 8), torch.ones(8), torch.empty(3, 8), torch.empty(3, 1)
    tensors = [library.tensor(t) for t in (x, gamma)], [library.tensor(t) for t in (y, rstd)]
    executor = library.first_phase("aclnnRmsNorm", *tensors[0], ctypes.c_double(1e-6), *tensors[1])
    assert library.opapi.aclSetAclOpExecutorRepeatable(executor) == 0
    for _ in range(3):
        x.copy_(torch.randn(3, 8))
        assert library.opapi.aclnnRmsNorm(None, ctypes.c_uint64(), executor, None) == 0, library.error()
        torch.testing.assert_close(y, norm(x))
    assert library.opapi.aclDestroyAclOpExecutor(executor) == 0


def test_a_storage_offset_stays(library: Library) -> None:
    stores = [torch.randn(4, 8), torch.randn(4, 8)]
    gamma, y, rstd = torch.ones(8), torch.empty(3, 8), torch.empty(3, 1)
    x, g, out, r = library.tensor(stores[0][1:], offset=8), *(library.tensor(t) for t in (gamma, y, rstd))
    executor = library.first_phase("aclnnRmsNorm", x, g, ctypes.c_double(1e-6), out, r)
    assert library.opapi.aclSetAclOpExecutorRepeatable(executor) == 0
    assert library.move(executor, x, stores[1]) == 0
    assert library.opapi.aclnnRmsNorm(None, ctypes.c_uint64(), executor, None) == 0, library.error()
    torch.testing.assert_close(y, norm(stores[1][1:]))
    assert library.opapi.aclDestroyAclOpExecutor(executor) == 0


def test_tensors_of_a_list_move(library: Library) -> None:
    xs, weights, ys = ([torch.randn(4, 4) for _ in range(2)] for _ in range(3))

    def listed(tensors: list[torch.Tensor]) -> ctypes.c_void_p:
        elements = (ctypes.c_void_p * len(tensors))(*(library.tensor(t).value for t in tensors))
        return ctypes.c_void_p(library.opapi.aclCreateTensorList(elements, ctypes.c_uint64(len(tensors))))

    x, weight, y = map(listed, (xs, weights, ys))
    executor = library.first_phase(
        "aclnnGroupedMatmul", x, weight, None, None, None, None, None, None, ctypes.c_int64(0), y
    )
    assert library.opapi.aclSetAclOpExecutorRepeatable(executor) == 0
    other, zero = torch.randn(4, 4), ctypes.c_size_t(0)
    dynamic = library.opapi.aclSetDynamicInputTensorAddr
    assert dynamic(executor, zero, ctypes.c_size_t(1), x, ctypes.c_void_p(other.data_ptr())) == 0, library.error()
    assert library.opapi.aclnnGroupedMatmul(None, ctypes.c_uint64(), executor, None) == 0, library.error()
    torch.testing.assert_close(ys, [xs[0] @ weights[0], other @ weights[1]])
    assert dynamic(executor, zero, ctypes.c_size_t(2), x, None) == 161002
    assert "relativeIndex is 2; expected less than 2" in library.error()
    assert library.opapi.aclDestroyAclOpExecutor(executor) == 0


def test_an_index_is_that_of_the_tensor(library: Library) -> None:
    """A device moves what stands at the index in a package's executor, whichever aclTensor is given."""
    x, gamma, y, rstd = torch.randn(3, 8), torch.ones(8), torch.empty(3, 8), torch.empty(3, 1)
    tensors = [library.tensor(t) for t in (x, gamma, y, rstd)]
    executor = library.first_phase("aclnnRmsNorm", *tensors[:2], ctypes.c_double(1e-6), *tensors[2:])
    assert library.opapi.aclSetAclOpExecutorRepeatable(executor) == 0
    other, out = torch.full((8,), 2.0), torch.empty(3, 8)
    assert library.move(executor, tensors[1], other, "Input", 0) == 161002
    assert "the index is 0, but this aclTensor has the index 1" in library.error()
    assert library.move(executor, tensors[1], other, "Input", 4) == 161002
    assert library.move(executor, tensors[1], other, "Input", 1) == 0, library.error()
    assert library.move(executor, tensors[2], out, "Output", 0) == 0, library.error()
    assert library.move(executor, tensors[3], rstd, "Output", 0) == 161002
    assert "does not agree with the outputs that were set before" in library.error()
    assert library.move(executor, tensors[3], rstd, "Output", 1) == 0, library.error()
    assert library.move(executor, tensors[3], rstd, "", 3) == 0, library.error()
    assert library.opapi.aclnnRmsNorm(None, ctypes.c_uint64(), executor, None) == 0, library.error()
    torch.testing.assert_close(out, 2 * norm(x))
    assert library.opapi.aclDestroyAclOpExecutor(executor) == 0


def test_a_list_has_the_index_of_its_parameter(library: Library) -> None:
    xs, weights, ys = ([torch.randn(4, 4) for _ in range(2)] for _ in range(3))

    def listed(tensors: list[torch.Tensor]) -> ctypes.c_void_p:
        elements = (ctypes.c_void_p * len(tensors))(*(library.tensor(t).value for t in tensors))
        return ctypes.c_void_p(library.opapi.aclCreateTensorList(elements, ctypes.c_uint64(len(tensors))))

    x, weight, y = map(listed, (xs, weights, ys))
    executor = library.first_phase(
        "aclnnGroupedMatmul", x, weight, None, None, None, None, None, None, ctypes.c_int64(0), y
    )
    assert library.opapi.aclSetAclOpExecutorRepeatable(executor) == 0
    move, other = library.opapi.aclSetDynamicInputTensorAddr, torch.randn(4, 4)
    for ir_index, status in ((0, 161002), (2, 161002), (1, 0)):
        place = ctypes.c_size_t(ir_index), ctypes.c_size_t(1)
        assert move(executor, *place, weight, ctypes.c_void_p(other.data_ptr())) == status, library.error()
    assert library.opapi.aclnnGroupedMatmul(None, ctypes.c_uint64(), executor, None) == 0, library.error()
    torch.testing.assert_close(ys, [xs[0] @ weights[0], xs[1] @ other])
    assert library.opapi.aclDestroyAclOpExecutor(executor) == 0


def test_what_an_executor_does_not_have_is_refused(library: Library) -> None:
    assert library.opapi.aclSetAclOpExecutorRepeatable(None) == 561103
    x, gamma, y, rstd = (
        library.tensor(t) for t in (torch.randn(3, 8), torch.ones(8), torch.empty(3, 8), torch.empty(3, 1))
    )
    executor = library.first_phase("aclnnRmsNorm", x, gamma, ctypes.c_double(1e-6), y, rstd)
    assert library.move(executor, x, None) == 161002
    assert "executor of aclnnRmsNorm runs once; call aclSetAclOpExecutorRepeatable first" in library.error()
    assert library.opapi.aclSetAclOpExecutorRepeatable(executor) == 0
    assert library.move(executor, library.tensor(torch.ones(1)), None) == 161002
    assert (
        "does not have this aclTensor; expected one that was given to aclnnRmsNormGetWorkspaceSize" in library.error()
    )
    assert library.move(executor, None, None) == 561103
    assert library.move(None, x, None) == 561103
    assert library.opapi.aclDestroyAclOpExecutor(executor) == 0


def test_a_storage_shape_is_what_the_tensor_was_made_with(library: Library) -> None:
    tensor = library.tensor(torch.randn(4, 8)[1:], offset=8)
    sizes, rank = ctypes.POINTER(ctypes.c_int64)(), ctypes.c_uint64()
    assert library.opapi.aclGetStorageShape(tensor, ctypes.byref(sizes), ctypes.byref(rank)) == 0
    assert sizes[: rank.value] == [32]
    assert library.opapi.aclGetStorageShape(tensor, None, ctypes.byref(rank)) == 161001
