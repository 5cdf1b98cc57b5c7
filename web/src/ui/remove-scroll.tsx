import { useEffect, type ElementType, type ReactNode } from "react";

// Stands in for react-remove-scroll, which writes a style element that the content policy of the page forbids.
let locks = 0;

export function RemoveScroll({ as: Wrapper = "div", children }: { as?: ElementType; children?: ReactNode }) {
  useEffect(() => {
    locks += 1;
    document.documentElement.classList.add("scroll-locked");
    return () => {
      locks -= 1;
      if (locks === 0) document.documentElement.classList.remove("scroll-locked");
    };
  }, []);
  return <Wrapper>{children}</Wrapper>;
}
