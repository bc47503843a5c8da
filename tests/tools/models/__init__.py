# SPDX-License-Identifier: BSD-3-Clause
"""Small models on the ranks of training and serving frameworks, drawn from a seed: where every
element lies, worked out slowly and by the frameworks' own words, and the same in the program's
file format."""
