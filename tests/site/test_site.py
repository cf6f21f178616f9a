"""The site as a reader sees it: no page is wider than the window, nothing is loaded from elsewhere, and search works."""

import re

import pytest
from conftest import PICTURES, ROOT, SITE
from selenium.webdriver.common.by import By
from selenium.webdriver.support.wait import WebDriverWait
from sphinx.util.inventory import InventoryFile

PAGES = sorted(str(path.relative_to(SITE)) for path in SITE.rglob("*.html") if "_static" not in path.parts)
PICTURED = {"start": "docs/index.html", "howto": "docs/howto/gpu-not-found.html", "python": "docs/reference/python.html",
            "c": "docs/reference/c/stream.html"}
HANG = 120  # seconds; only ends a wait that would never end by itself

LOADED = "return performance.getEntriesByType('resource').map(entry => entry.name)"
# The first parts of an article that end outside the window, and are not inside a block or table that scrolls. The article
# itself would scroll too.
OUTSIDE = """
const scrolls = one => one.tagName != 'ARTICLE' && (/auto|scroll/.test(getComputedStyle(one).overflowX) || scrolls(one.parentElement));
const wide = one => [...one.getClientRects()].some(box => box.width && box.right > innerWidth + 1);
const found = [...document.querySelectorAll('article *')].filter(one => wide(one) && !scrolls(one)).map(one => one.textContent.trim().slice(0, 60));
return document.scrollingElement.scrollWidth > innerWidth ? ['the page', ...found.slice(0, 3)] : found.slice(0, 3);
"""
# The first words of tables that scroll.
CUT = """
const cut = one => { const box = one.closest('.pst-scrollable-table-container') || one; return box.scrollWidth > box.clientWidth + 1; };
return [...document.querySelectorAll('article table')].filter(cut).map(one => one.textContent.trim().replace(/\\s+/g, ' ').slice(0, 40));
"""
BACKGROUND = "return getComputedStyle(document.body).backgroundColor"


@pytest.mark.parametrize("width", [1280, 400])
def test_no_page_is_wider_than_the_window(width, show):
    wide = {page: outside for page in PAGES if (outside := show(page, width).execute_script(OUTSIDE))}
    assert not wide


def test_no_table_is_cut_off_in_a_wide_window(show):
    """But for those that name a test in each line, which only developers of gpuglue read, and long names of other packages."""
    left_out = ("SECURITY", "tests/", "docs/reference/compat-names", "docs/reference/pycuda-names")
    wide = {page: cut for page in PAGES if not page.startswith(left_out) and (cut := show(page, 1280).execute_script(CUT))}
    assert not wide


def test_names_of_other_libraries_are_not_listed_as_ours():
    text = (SITE / "docs/reference/python.html").read_text()
    assert "gpuglue.Stream.synchronize" in text and "gpuglue.Stream.wait_event" not in text and "Of other libraries: " not in text


def test_options_are_shown_as_they_are_typed():
    dashed = {page: found for page in PAGES if (found := re.findall(r" [–—][a-z]+", (SITE / page).read_text()))}
    assert not dashed


@pytest.mark.parametrize("width", [1280, 400])
@pytest.mark.parametrize("name", PICTURED)
def test_pages_are_loaded_whole_from_this_machine(name, width, show, site):
    browser = show(PICTURED[name], width)
    PICTURES.mkdir(parents=True, exist_ok=True)
    browser.save_screenshot(str(PICTURES / f"{name}-{width}.png"))
    assert browser.execute_script("return document.querySelectorAll('article h1').length") == 1
    assert all(address.startswith((site, "data:")) for address in browser.execute_script(LOADED))
    assert [line for line in browser.get_log("browser") if line["level"] == "SEVERE"] == []


def test_images_are_shown(show):
    browser = show(PICTURED["c"], 1280)
    shown = "return [...document.querySelectorAll('article img')].map(image => image.complete && image.naturalWidth > 100)"
    assert browser.execute_script(shown) == [True]


def test_search_finds_stream_in_python_and_c(show):
    browser = show("search.html?q=Stream", 1280)
    found = lambda browser: [link.get_attribute("href") for link in browser.find_elements(By.CSS_SELECTOR, "ul.search li > a")]
    WebDriverWait(browser, HANG).until(lambda browser: any("reference/python.html" in link for link in found(browser)))
    WebDriverWait(browser, HANG).until(lambda browser: any("reference/c/stream.html" in link for link in found(browser)))
    browser.save_screenshot(str(PICTURES / "search-1280.png"))


def test_the_theme_can_be_dark(show):
    browser = show(PICTURED["c"], 1280)
    light = browser.execute_script(BACKGROUND)
    browser.execute_script("document.documentElement.dataset.theme = 'dark'")
    browser.save_screenshot(str(PICTURES / "c-dark-1280.png"))
    assert browser.execute_script(BACKGROUND) != light


def test_every_public_function_struct_and_enum_is_in_the_index():
    index = InventoryFile.loads((SITE / "objects.inv").read_bytes(), uri="")
    entries = {kind: set(names) for kind, names in index.data.items() if kind.startswith("c:")}
    print({kind: len(names) for kind, names in entries.items()})
    text = "".join(path.read_text() for path in (ROOT / "core/include/gpuglue").glob("*.h"))
    functions = set(re.findall(r"^GG_API [\w ]+?[ *]+(gg_\w+)\(", text, re.M))
    structs = set(re.findall(r"^struct (gg_\w+) \{", text, re.M))
    enums = set(re.findall(r"^(?:typedef )?enum (gg_\w+) \{", text, re.M))
    assert functions <= entries["c:function"] | entries["c:struct"]  # gg_device_info is both
    assert structs <= entries["c:struct"] | entries["c:function"]
    assert enums <= entries["c:enum"]
