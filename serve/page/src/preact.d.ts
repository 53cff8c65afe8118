// What the page uses of Preact (vendor/preact.js).  No attribute takes markup: text from a target is text.
export interface VNode {
  readonly type: unknown;
}
export type Child = VNode | string | number | boolean | null | undefined | Child[];
export type Component<P> = (props: P & { children?: Child }) => Child;

interface Attributes {
  key?: string | number;
  ref?: { current: unknown };
  children?: Child;
  class?: string | undefined;
  style?: Record<string, string | number>;
  [data: `data-${string}`]: string | number | undefined;
  [aria: `aria-${string}`]: string | number | boolean | undefined;
  [event: `on${string}`]: ((event: never) => void) | undefined;
  id?: string | undefined;
  title?: string | undefined;
  role?: string;
  tabIndex?: number;
  href?: string;
  download?: string;
  type?: string;
  name?: string;
  for?: string;
  value?: string | number;
  checked?: boolean;
  selected?: boolean;
  disabled?: boolean;
  hidden?: boolean;
  open?: boolean;
  method?: string;
  placeholder?: string;
  min?: number;
  max?: number;
  step?: number;
  rows?: number;
  width?: number;
  height?: number;
  colSpan?: number;
  scope?: string;
  spellcheck?: boolean;
  autocomplete?: string;
  autofocus?: boolean;
}

export function h(type: string | Component<never>, props: object | null, ...children: Child[]): VNode;
export function Fragment(props: { children?: Child }): VNode;
export function render(node: VNode, parent: Element): void;

export namespace h.JSX {
  type Element = VNode;
  type ElementType = string | ((props: never) => Child);
  interface IntrinsicElements {
    [name: string]: Attributes;
  }
  interface IntrinsicAttributes {
    key?: string | number;
  }
  interface ElementChildrenAttribute {
    children: object;
  }
}
