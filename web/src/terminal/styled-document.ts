// xterm.js writes its colours into style elements, which the content policy of the page forbids. This document makes
// hidden elements in their place, whose text becomes a constructed style sheet, which a policy need not allow.
function styleElement(): HTMLElement {
  const element = document.createElement("span");
  element.hidden = true;
  const sheet = new CSSStyleSheet();
  let text = "";
  Object.defineProperty(element, "textContent", {
    get: () => text,
    set: (value: string) => {
      text = value;
      sheet.replaceSync(value);
      if (!document.adoptedStyleSheets.includes(sheet)) document.adoptedStyleSheets.push(sheet);
    },
  });
  element.remove = () => {
    document.adoptedStyleSheets = document.adoptedStyleSheets.filter((each) => each !== sheet);
    Element.prototype.remove.call(element);
  };
  return element;
}

export function styledDocument(): Document {
  const createElement = (name: string) => (name === "style" ? styleElement() : document.createElement(name));
  return new Proxy(document, {
    get(target, property) {
      if (property === "createElement") return createElement;
      const value: unknown = Reflect.get(target, property, target);
      return typeof value === "function" ? (value as (...args: unknown[]) => unknown).bind(target) : value;
    },
  });
}
