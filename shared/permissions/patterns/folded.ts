/**
 * The text as a file system compares names in which it ignores case: `ſ` is an s there and `ß` two of them, however accents are
 * put together, and characters that show nothing count for nothing on some.
 */
export function folded(text: string): string {
  // Capitals last: which small letter one has may depend on what follows it.
  const letters = text
    .normalize('NFD')
    .replaceAll(/\p{Default_Ignorable_Code_Point}/gu, '')
    .toLowerCase()
    .toUpperCase()
  return letters.normalize('NFC')
}
