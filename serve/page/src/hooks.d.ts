// What the page uses of Preact's hooks (vendor/hooks.js).
type Cleanup = (() => void) | undefined | void;
export function useState<T>(first: T | (() => T)): [T, (next: T | ((old: T) => T)) => void];
export function useEffect(run: () => Cleanup, depends?: readonly unknown[]): void;
export function useLayoutEffect(run: () => Cleanup, depends?: readonly unknown[]): void;
export function useMemo<T>(make: () => T, depends: readonly unknown[]): T;
export function useRef<T>(first: T): { current: T };
