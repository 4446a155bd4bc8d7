import type { ServiceErrorCode } from '../../shared/device/service.ts'

/** Why something could not be done to the service, with what a person can do about it. */
export class ServiceError extends Error {
  readonly code: ServiceErrorCode
  readonly remediation: string

  constructor(code: ServiceErrorCode, message: string, remediation: string) {
    super(message)
    this.name = 'ServiceError'
    this.code = code
    this.remediation = remediation
  }
}
