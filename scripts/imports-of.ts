export interface Import {
  specifier: string
  /** Nothing of it is left when the program runs. */
  typeOnly: boolean
}

/** What a source file imports, also what it loads when it needs it. */
export function importsOf(text: string): Import[] {
  const found: Import[] = []
  for (const match of text.matchAll(/^\s*(?:import|export)\s+(type\s+)?(?:[^'"]*?\sfrom\s+)?['"]([^'"]+)['"]/gm))
    found.push({ specifier: match[2] ?? '', typeOnly: match[1] !== undefined })
  for (const match of text.matchAll(/(\btypeof\s+)?\bimport\(\s*['"]([^'"]+)['"]\s*\)/g))
    found.push({ specifier: match[2] ?? '', typeOnly: match[1] !== undefined })
  return found
}
