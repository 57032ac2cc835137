"""A Sphinx extension that keeps out of the pages what Jupyter Book adds to each and this book does not use.

Thebe (running cells on a remote server) would put a web address and the name of a foreign repository into every
page, and an error into the browser's console.
"""

from sphinx.application import Sphinx

UNUSED = ("sphinx_thebe", "sphinx_comments")


def setup(app: Sphinx) -> dict[str, bool]:
    """Take back what the unused extensions wanted to do later."""
    for listeners in app.events.listeners.values():
        for listener in list(listeners):
            if listener.handler.__module__.split(".")[0] in UNUSED:
                app.disconnect(listener.id)
    app.registry.css_files[:] = [file for file in app.registry.css_files if file[0] != "sphinx-thebe.css"]
    return {"parallel_read_safe": True, "parallel_write_safe": True}
