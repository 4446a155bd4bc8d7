import { CliError } from './cli-error.ts'

/** What is wrong with a file of this machine. */
export const fileFailure = (code: string, message: string, cause?: unknown): CliError =>
  new CliError(code, message, { exit: 'refused', cause })
