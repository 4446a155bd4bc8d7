/** A pattern for `like ... escape '\'` that finds the text anywhere, whatever characters it holds. */
export const likeContaining = (text: string): string => `%${text.replaceAll(/[\\%_]/g, (c) => `\\${c}`)}%`
