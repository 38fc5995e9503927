// What the theme leaves out: a name for the landmark of each block of code, and the keyboard for those that scroll.
const mend = () => {
  document.querySelectorAll(".md-code__nav:not([aria-label])").forEach((nav) => {
    nav.setAttribute("aria-label", `Block of code ${document.querySelectorAll(".md-code__nav[aria-label]").length + 1}`);
  });
  document.querySelectorAll("pre > code:not([tabindex])").forEach((code) => {
    if (code.scrollWidth > code.clientWidth) code.tabIndex = 0;
  });
};
new MutationObserver(mend).observe(document.body, { attributeFilter: ["tabindex"], childList: true, subtree: true });
addEventListener("resize", mend);
mend();
