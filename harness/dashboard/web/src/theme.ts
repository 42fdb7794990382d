// The colour theme: light, dark, or the system's theme. The browser remembers the choice if storage is available.

export const THEMES = ["system", "light", "dark"] as const;
export type Theme = (typeof THEMES)[number];
const KEY = "tfb-theme";

export function theme(): Theme {
  try {
    const stored = localStorage.getItem(KEY);
    return stored === "light" || stored === "dark" ? stored : "system";
  } catch {
    return "system"; // some browsers deny access to storage for files from disk
  }
}

export function applyTheme(chosen: Theme = theme()): void {
  try {
    if (chosen === "system") localStorage.removeItem(KEY);
    else localStorage.setItem(KEY, chosen);
  } catch {
    // storage is unavailable
  }
  if (chosen === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = chosen;
}
