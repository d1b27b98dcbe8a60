"""Networks shared by the models: encoders, attention, copying, graph attention."""
