"""The paper's figures and tables, run again: one file an experiment, on the public interface of Sunzi alone."""
