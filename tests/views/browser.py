"""Pages in a real browser. Tests that need one are skipped where there is none."""

import json
import shutil

import pytest


@pytest.fixture(scope="module")
def browser():
    webdriver = pytest.importorskip("selenium.webdriver", reason="the page's tests need Selenium")
    from selenium.common.exceptions import WebDriverException

    programs = map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))
    chrome = next(filter(None, programs), None)
    driver = shutil.which("chromedriver")
    if chrome is None or driver is None:
        pytest.skip("the page's tests need chromium and chromedriver (Debian: chromium-driver)")
    options = webdriver.ChromeOptions()
    options.binary_location = chrome
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    try:
        running = webdriver.Chrome(options, webdriver.ChromeService(driver))
    except WebDriverException as error:
        pytest.skip(f"chromium is here but does not start: {error.msg}")
    yield running
    running.quit()


class Page:
    """A page open in a browser, as wide as a phone or a screen, light or dark."""

    def __init__(self, browser, path, width=1280, dark=False):
        self.browser = browser
        browser.get_log("browser")
        browser.get_log("performance")
        size = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 600}
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
        browser.get(path.as_uri())

    def run(self, script, *arguments):
        return self.browser.execute_script(f"return {script}", *arguments)

    def find(self, selector):
        return self.browser.find_elements("css selector", selector)

    def text(self, selector="body"):
        return self.find(selector)[0].text

    def wait(self, condition):
        from selenium.webdriver.support.ui import WebDriverWait

        return WebDriverWait(self.browser, 60).until(lambda _: condition())

    def named(self, selector, words):
        """The first element with these words in it."""
        return next(found for found in self.find(selector) if words in found.text)

    def press(self, *keys):
        from selenium.webdriver import ActionChains

        ActionChains(self.browser).send_keys(*keys).perform()

    def problems(self):
        """What the browser complained of."""
        return self.browser.get_log("browser")

    def requests(self):
        messages = [json.loads(e["message"])["message"] for e in self.browser.get_log("performance")]
        asked = [m["params"] for m in messages if m["method"] == "Network.requestWillBeSent"]
        urls = [request["request"]["url"] for request in asked]
        return [url for url in urls if not url.startswith("data:")]

    def overflowing(self):
        """Elements that reach beyond the right edge of the page, unless they scroll inside of it."""
        return self.run(
            """(() => {
                const edge = document.documentElement.clientWidth + 1;
                return [...document.querySelectorAll('main *')].filter(e => !e.closest('svg'))
                    .filter(e => e.getBoundingClientRect().right > edge).map(e => e.outerHTML);
            })()"""
        )

    def contrasts(self):
        """How well each text can be told from what is behind it, WCAG's ratio, and the text."""
        return self.run(
            """(() => {
                const parts = c => c.match(/[\\d.]+/g).map(Number);
                const light = ([r, g, b]) => [r, g, b].map(x => x / 255)
                    .map(x => x <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4)
                    .reduce((sum, x, i) => sum + x * [0.2126, 0.7152, 0.0722][i], 0);
                const behind = e => {
                    for (; e; e = e.parentElement) {
                        const c = parts(getComputedStyle(e).backgroundColor);
                        if (c.length === 3 || c[3] === 1) return c;
                    }
                    return [255, 255, 255];
                };
                return [...document.querySelectorAll('main *')].filter(e => !e.closest('svg, script'))
                    .filter(e => [...e.childNodes].some(n => n.nodeType === 3 && n.data.trim()))
                    .map(e => {
                        const a = light(parts(getComputedStyle(e).color)), b = light(behind(e));
                        return [(Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05), e.textContent];
                    });
            })()"""
        )
