"""An explainable, semi-supervised medical dialogue system."""
