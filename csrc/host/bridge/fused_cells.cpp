#include "fused_cells.h"

#include <ATen/ATen.h>

namespace ascend_graph::host {
namespace {

using at::Tensor;
using OptionalTensor = std::optional<Tensor>;

Tensor with_bias(Tensor gates, const OptionalTensor& bias) {
    return bias.has_value() && bias->defined() ? gates + *bias : gates;
}

Tensor bias_gradient(const Tensor& gates, bool has_bias) { return has_bias ? gates.sum(0) : Tensor(); }

// The workspace keeps the activated gates i, f, g, o side by side.
std::tuple<Tensor, Tensor, Tensor> lstm_cell(const Tensor& input_gates, const Tensor& hidden_gates,
                                             const Tensor& cx, const OptionalTensor& input_bias,
                                             const OptionalTensor& hidden_bias) {
    const auto gates =
        (with_bias(input_gates, input_bias) + with_bias(hidden_gates, hidden_bias)).chunk(4, 1);
    const Tensor i = gates[0].sigmoid(), f = gates[1].sigmoid(), g = gates[2].tanh(), o = gates[3].sigmoid();
    const Tensor cy = f * cx + i * g;
    return {o * cy.tanh(), cy, at::cat({i, f, g, o}, 1)};
}

std::tuple<Tensor, Tensor, Tensor> lstm_cell_backward(const OptionalTensor& grad_hy,
                                                      const OptionalTensor& grad_cy, const Tensor& cx,
                                                      const Tensor& cy, const Tensor& workspace,
                                                      bool has_bias) {
    const bool from_hy = grad_hy.has_value() && grad_hy->defined();
    const bool from_cy = grad_cy.has_value() && grad_cy->defined();
    if (!from_hy && !from_cy) return {};
    const auto gates = workspace.chunk(4, 1);
    const Tensor &i = gates[0], &f = gates[1], &g = gates[2], &o = gates[3];
    const Tensor activated = cy.tanh();
    const Tensor hy = from_hy ? *grad_hy : at::zeros_like(cy);
    Tensor c = hy * o * (1 - activated.square());
    if (from_cy) c = c + *grad_cy;
    const Tensor gradient = at::cat(
        {c * g * i * (1 - i), c * cx * f * (1 - f), c * i * (1 - g.square()), hy * activated * o * (1 - o)},
        1);
    return {gradient, c * f, bias_gradient(gradient, has_bias)};
}

// The workspace keeps the activated gates r, z, n, the hidden state and the hidden part of n before its reset
// gate.
std::tuple<Tensor, Tensor> gru_cell(const Tensor& input_gates, const Tensor& hidden_gates, const Tensor& hx,
                                    const OptionalTensor& input_bias, const OptionalTensor& hidden_bias) {
    const auto in = with_bias(input_gates, input_bias).chunk(3, 1);
    const auto hidden = with_bias(hidden_gates, hidden_bias).chunk(3, 1);
    const Tensor r = (in[0] + hidden[0]).sigmoid(), z = (in[1] + hidden[1]).sigmoid();
    const Tensor n = (in[2] + r * hidden[2]).tanh();
    return {n + z * (hx - n), at::cat({r, z, n, hx, hidden[2]}, 1)};
}

std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor> gru_cell_backward(const Tensor& grad,
                                                                     const Tensor& workspace, bool has_bias) {
    const auto kept = workspace.chunk(5, 1);
    const Tensor &r = kept[0], &z = kept[1], &n = kept[2], &hx = kept[3], &hidden_n = kept[4];
    const Tensor grad_z = grad * (hx - n) * z * (1 - z);
    const Tensor grad_n = grad * (1 - z) * (1 - n.square());
    const Tensor grad_r = grad_n * hidden_n * r * (1 - r);
    const Tensor input_gates = at::cat({grad_r, grad_z, grad_n}, 1);
    const Tensor hidden_gates = at::cat({grad_r, grad_z, grad_n * r}, 1);
    return {input_gates, hidden_gates, grad * z, bias_gradient(input_gates, has_bias),
            bias_gradient(hidden_gates, has_bias)};
}

}  // namespace

void register_fused_cells(torch::Library& cpu) {
    cpu.impl("_thnn_fused_lstm_cell", &lstm_cell);
    cpu.impl("_thnn_fused_lstm_cell_backward_impl", &lstm_cell_backward);
    cpu.impl("_thnn_fused_gru_cell", &gru_cell);
    cpu.impl("_thnn_fused_gru_cell_backward", &gru_cell_backward);
}

}  // namespace ascend_graph::host
