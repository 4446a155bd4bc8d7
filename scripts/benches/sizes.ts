/** `--short`: everything is as small as it can be, to see whether each measurement works; its figures say nothing. */
export const isShort = process.argv.includes('--short')

export const size = (full: number, short: number): number => (isShort ? short : full)
