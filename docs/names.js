// What the theme leaves out: names of its own for the landmark of each block of code and of each part of the table of
// contents, and the keyboard for code and tables that scroll.
const mend = () => {
  document.querySelectorAll(".md-code__nav:not([aria-label])").forEach((nav) => {
    nav.setAttribute("aria-label", `Block of code ${document.querySelectorAll(".md-code__nav[aria-label]").length + 1}`);
  });
  document.querySelectorAll(".md-nav--secondary .md-nav[aria-label]:not([aria-label^='Within '])").forEach((nav) => {
    nav.setAttribute("aria-label", `Within ${nav.getAttribute("aria-label")}`);
  });
  document.querySelectorAll(":is(pre > code, .md-typeset__scrollwrap):not([tabindex])").forEach((box) => {
    if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
  });
};
new MutationObserver(mend).observe(document.body, { attributeFilter: ["tabindex"], childList: true, subtree: true });
addEventListener("resize", mend);
mend();
