/** The sum of two counts. Where a harness counts beyond all sense it stays a number that the events of a run can hold. */
export const addedTokens = (one: number, other: number): number => Math.min(one + other, Number.MAX_SAFE_INTEGER)
