"""The host runtime: CANN's libraries on host memory, under which the stock torch_npu and torchair wheels run without an NPU.

``python -m ascend_graph.host script.py`` starts a process in it.
"""
