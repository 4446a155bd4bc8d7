/** A pattern for `like ... escape '\'` that finds the text anywhere, whatever characters it holds. */
export const likeContaining = (text: string): string => `%${text.replaceAll(/[\\%_]/g, (c) => `\\${c}`)}%`

/**
 * SQL: whether a column holds what `likeContaining` made, whatever the case. The database lowers both sides: most know capitals
 * of ASCII only, and with a pattern lowered by us a text with others would not even find itself.
 */
export const holdsPattern = (column: string): string => `lower(coalesce(${column}, '')) like lower(?) escape '\\'`
