"""Sphinx: builds the site from README.md, docs/ and the READMEs of the examples. `make docs` runs it.

The source directory is the root of the tree, so that links between pages also work on GitHub."""

import re
from pathlib import Path

import gpuglue
from sphinx.domains.c import CDomain

project = "gpuglue"
copyright = "the gpuglue authors"
version = release = gpuglue.__version__
root_doc = "docs/index"

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "breathe"]
include_patterns = [
    "README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "docs/**.md", "examples/*/README.md", "bench/README.md",
    "tests/README.md", "tests/PROBING.md", "tests/DIFFERENCES.md", "tests/sim/README.md", "docs/static/*",
]  # fmt: skip
exclude_patterns = [".*", "build", "dist", "third_party", "core", "backends", "python", "scripts"]

myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence"]
smartquotes_action = "qe"  # quotes and ellipses; a dash would make --json unreadable
# Program output has a language of its own, which tests/docs compares with what the block above prints.
highlight_language = "text"

autodoc_default_options = {"members": True, "undoc-members": True, "member-order": "groupwise"}
autodoc_typehints = "none"
napoleon_google_docstring = False
napoleon_use_ivar = True  # the attributes of a class have entries of their own
napoleon_use_rtype = False
napoleon_preprocess_types = True  # links to classes only, not to any attribute of that name
default_role = "literal"  # `name` in a docstring, as NumPy writes it

# The comments of the C headers, which `doxygen docs/doxygen/Doxyfile` has read.
breathe_projects = {"gpuglue": str(Path(__file__).parents[1] / "build/doxygen/xml")}
breathe_default_project = "gpuglue"
breathe_domain_by_extension = {"h": "c"}
breathe_show_include = False
# A struct and a function may have one name in C (gg_device_info), and the C domain has one name space.
suppress_warnings = ["duplicate_declaration.c"]

# Only `make docs-links` uses the network.
linkcheck_timeout = 20
linkcheck_retries = 2

html_theme = "pydata_sphinx_theme"
html_title = f"gpuglue {release}"
html_theme_options = {
    "show_toc_level": 2,
    "header_links_before_dropdown": 7,
    "navigation_with_keys": False,
    "show_prev_next": False,
    "navbar_persistent": ["search-button"],
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
}
html_context = {"default_mode": "auto"}
# Pages without neighbours have no list of them.
html_sidebars = dict.fromkeys(("docs/index", "README", "docs/tutorial", "docs/migration"), [])
html_show_sourcelink = False
html_static_path = ["static"]
html_favicon = "static/icon.svg"
html_css_files = ["site.css"]
# The first page of the site leads to docs/index.html.
html_extra_path = ["redirect/index.html"]


def escape(app, what, name, obj, options, lines):
    """Docstrings are plain text: a parameter such as *args is not the beginning of an emphasis."""
    lines[:] = [re.sub(r"(?<![\w*`\\])(\*+)(?=\w)", lambda stars: "\\*" * len(stars[1]), line) for line in lines]


def skip(app, what, name, obj, skipped, options):
    """The names of other libraries, which only raise an AttributeError, are not on the pages."""
    return True if str(getattr(obj, "__doc__", "")).startswith("Of other libraries: ") else None


class Names(CDomain):
    """C without the parameters of functions, which would hide all else in the search for "stream"."""

    def get_objects(self):
        """Called for the search and for the inventory."""
        return (entry for entry in super().get_objects() if entry[2] != "functionParam")


def setup(app):
    """Called by Sphinx."""
    app.add_domain(Names, override=True)
    app.connect("autodoc-skip-member", skip)
    app.connect("autodoc-process-docstring", escape, priority=400)  # before napoleon, which writes emphasis
