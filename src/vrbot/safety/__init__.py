"""Safety that works with the model dead: red flags, medication checks, claims, private details, a kill switch."""
