"""Experiments, exact solvers with certificates, checks, report and command line.

Importing this package does not import torch; the modules that need it do.
"""
