"""Host's part of CANN below torch_npu: graph engine, aclnn functions, collectives."""
