export const editor = globalThis.probingEditor;
export const hidden = () => document.hidden || (editor?.hidden ?? false);
