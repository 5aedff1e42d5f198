"""The module ``tbe.common.platform`` of the toolkit, which libraries of Triton kernels ask for sizes of memories."""

from __future__ import annotations

import pytest
import torch
from tbe.common.platform import get_soc_spec, set_current_compile_soc_info


def test_facts_are_those_of_the_device_until_another_is_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tbe.common.platform._chosen", [])
    name = torch.npu.get_device_name()
    assert get_soc_spec("SOC_VERSION") == name
    assert set_current_compile_soc_info(name) == "success"
    assert get_soc_spec("UB_SIZE") == 192 * 1024
    assert set_current_compile_soc_info("Ascend950PR_9589") == "success"
    assert get_soc_spec("UB_SIZE") == 248 * 1024
    assert get_soc_spec("L0C_SIZE") == 256 * 1024


def test_unknown_socs_and_keys_are_refused() -> None:
    with pytest.raises(ValueError, match="soc_version must be one of Ascend310P1, .*, got 'Ascend1'"):
        set_current_compile_soc_info("Ascend1")
    with pytest.raises(ValueError, match="key of get_soc_spec must be one of SOC_VERSION, .*, got 'SIZE'"):
        get_soc_spec("SIZE")
