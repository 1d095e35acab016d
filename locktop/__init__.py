"""The package's name for tools that read source: editors, type checkers, structure drawers.

The folders here are links to the folders beside this one. The build does not read them: it maps
``collector``, ``tui`` and ``themes`` into the package and makes a file of this name
(pyproject.toml, ``tool.scikit-build``).
"""

__version__: str
