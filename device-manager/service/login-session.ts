import type { ControlStatus } from '../../shared/device/control.ts'
import type { RunTool } from './tool.ts'

/**
 * Asks macOS what the session of launchd in which this program was started is now. A program that goes on after its session has ended
 * has no way to the services of the session any more: whoever asks the system whether a certificate is trusted is refused (Go's programs
 * say `x509: OSStatus -26276`), and what it starts has none either. So this program asks, and nobody for it.
 */
export async function askLoginSession(run: RunTool): Promise<NonNullable<ControlStatus['loginSession']> | null> {
  const [named, searched] = await Promise.all([
    run('launchctl', ['managername']),
    // Goes the same way as a question about a certificate, and needs none.
    run('security', ['list-keychains']),
  ])
  // Not there, or did not end in time: nothing is known.
  if (named.status === null) return null
  const name = named.stdout.trim().slice(0, 64)
  return {
    manager: named.status === 0 && name !== '' ? name : null,
    trusts: searched.status === null ? null : searched.status === 0,
  }
}
