"""Pages opened in a real browser, without a window: what its console says, and what a script finds on the page."""

import json
import re
import shutil
import subprocess
from html import unescape

NAMES = ("chromium", "chromium-browser", "google-chrome")
CONSOLE = re.compile(r"CONSOLE[^\]]*\] (.*)")


def installed():
    """The browser's path, or None."""
    return next((path for path in map(shutil.which, NAMES) if path), None)


class Browser:
    """Chromium with a profile of its own in `folder`."""

    def __init__(self, folder):
        self.folder = folder

    def run(self, *arguments, dark=False, width=1400):
        return subprocess.run(
            [
                installed(), "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
                f"--user-data-dir={self.folder / 'profile'}", f"--window-size={width},3000",
                f"--blink-settings=preferredColorScheme={0 if dark else 1}", "--virtual-time-budget=5000",
                "--enable-logging=stderr", *map(str, arguments),
            ],
            capture_output=True, text=True, timeout=120, check=True,
        )  # fmt: skip

    def ask(self, page, script, width=1400, dark=False):
        """What `script`, the body of a function, returns on the page, and the lines of the console.

        The page stands in a frame of this width, since a window cannot be as narrow as a telephone.
        """
        asked = self.folder / "asked.html"
        tail = f"<script>parent.postMessage(JSON.stringify((() => {{ {script} }})()), '*')</script></body>"
        asked.write_text(page.replace("</body>", tail), encoding="utf-8")
        frame = self.folder / "frame.html"
        frame.write_text(
            "<!doctype html><script>onmessage = (event) => document.documentElement.dataset.answer = event.data"
            f'</script><iframe src="asked.html" style="border:0;width:{width}px;height:2000px"></iframe>',
            encoding="utf-8",
        )
        done = self.run("--dump-dom", frame.as_uri(), dark=dark)
        answer = re.search(r'data-answer="([^"]*)"', done.stdout)
        assert answer, f"the page did not answer: {done.stderr}"
        return json.loads(unescape(answer[1])), CONSOLE.findall(done.stderr)
