/** The statuses, the message and the remediation of an error code. */
export interface ErrorEntry {
  /** The first is the default; `fail` takes another of the list by name. */
  readonly status: readonly [number, ...number[]]
  /** The message for the caller when the thrower gives none. */
  readonly message: string
  /** Short name of the fix. */
  readonly remediation: string | null
}

export const entry = (
  status: number | readonly [number, ...number[]],
  message: string,
  remediation: string | null = null,
) => ({ status: typeof status === 'number' ? ([status] as const) : status, message, remediation }) satisfies ErrorEntry
