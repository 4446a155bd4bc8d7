/** Says how the leader of a harness's process tree left. */
export interface LeaderExit {
  exitCode: number | null
  signal: string | null
}

/** A launched harness, in a pty or on pipes. */
export interface Child {
  readonly pid: number
  /** The path of its terminal, where it has one. */
  readonly terminal?: string
  write(text: string): void
  closeInput(): void
  /** The leader has exited; others of its tree may still hold its output open. */
  readonly leaderGone: Promise<void>
  /** All output was read, and the leader has exited. */
  readonly closed: Promise<LeaderExit>
  /** Stops reading although somebody still holds the output; `closed` follows. */
  abandon(): void
}

export interface ChildLaunch {
  /** Absolute path. */
  file: string
  args: readonly string[]
  env: Readonly<Record<string, string>>
  cwd: string
  onOutput(chunk: Uint8Array): void
  onStderr(chunk: Uint8Array): void
}
