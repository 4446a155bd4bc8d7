/**
 * The harness cannot be launched with what the spec says. The message is a whole sentence for the person who set the
 * agent up; the run host ends the run `harness_start_failed` with it.
 */
export class HarnessLaunchError extends Error {
  override readonly name = 'HarnessLaunchError'
}
