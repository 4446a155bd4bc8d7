import type { ControlStatus } from '../../shared/device/control.ts'

/** What a doctor says of the session in which the device manager works. */
export interface SessionVerdict {
  verdict: 'ok' | 'warning' | 'failed'
  message: string
  fix: string | null
}

/**
 * On macOS: whether what the device manager starts can ask the system about certificates, now and after the person has signed out. null:
 * there are no such sessions here, or it does not say.
 */
export function sessionVerdict({ loginSession, service }: ControlStatus): SessionVerdict | null {
  if (loginSession === undefined) return null
  const { manager, trusts } = loginSession
  const fix = service?.installed === true ? 'svc device restart' : 'svc device install-service'
  if (manager === null || trusts === false)
    return {
      verdict: 'failed',
      message:
        'macOS does not answer the device manager about certificates, since the login session in which it was started has ended: in its runs gh and other programs end with "x509: OSStatus -26276".',
      fix,
    }
  if (service?.startedByService !== true)
    return {
      verdict: 'warning',
      message: `The device manager belongs to the login session (${manager}) in which it was started by hand. When that one ends, macOS answers it no more about certificates.`,
      fix,
    }
  if (trusts === null) return null
  return {
    verdict: 'ok',
    message: `macOS answers the device manager about them; launchd starts it anew with each login (${manager})`,
    fix: null,
  }
}
