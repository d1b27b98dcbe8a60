"""The paper's tables and figures as plans that are run, resumed and reported."""
