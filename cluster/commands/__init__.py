"""The commands of `kvstrata`: one module a group. They parse and show; the work is done elsewhere.

They import what they need when they run, so that `kvstrata --help` is there at once.
"""
