"""ONNX: the graph of a model, its operators, and onnxruntime, which is asked."""
