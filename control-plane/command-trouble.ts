import { certificateTrouble } from '../shared/lib/certificate-trouble.ts'
import { databaseTroubleOf, isFull, NotBegunError } from './db/dialect.ts'
import { OperatorError } from './operator/people.ts'
import { ConfigError, StartError } from './process/config-error.ts'
import { VaultError } from './vault/vault.ts'

// What operators are told of a command that fails.

/** A start that is refused for what the settings say, by the server itself, by the system (a port) or by the database (a password). */
export function isOfSettings(error: unknown): boolean {
  if (error instanceof ConfigError || error instanceof VaultError) return true
  const { code, port } = error as { code?: unknown; port?: unknown }
  return (code === 'EACCES' && port !== undefined) || isWrongLogin(code)
}

/** Class 28 of PostgreSQL. */
const isWrongLogin = (code: unknown): boolean => typeof code === 'string' && /^28[0-9A-Z]{3}$/.test(code)

const isForOperator = (error: unknown): error is Error =>
  [ConfigError, StartError, OperatorError].some((kind) => error instanceof kind)

/** A sentence for the usual reasons why a server cannot start, or a command does nothing; null for an unexpected error. */
export function troubleFor(error: unknown): string | null {
  if (isForOperator(error)) return error.message
  const { code, port, syscall, path, hostname, address } = error as NodeJS.ErrnoException & {
    port?: number
    hostname?: string
    address?: string
  }
  const message = reasonOf(error)
  if (code === 'EADDRINUSE') return `Port ${port} is taken. Choose another with --port (0: any free one) or SVC_PORT.`
  if (code === 'EACCES' && port !== undefined)
    return `Port ${port} may not be used by this user. Choose one with --port.`
  if (code === 'EADDRNOTAVAIL' && syscall === 'listen')
    return `${address} is no address of this machine. Choose another with --host or SVC_HOST.`
  if (syscall === 'getaddrinfo')
    return `The host ${hostname} cannot be found (${code}). It is that of --host (SVC_HOST) or of --database-url (SVC_DATABASE_URL).`
  if (syscall === 'mkdir') return `The folder ${path} cannot be made: ${message}. Choose another with --data-dir.`
  // Of a file; what lies in the data folder is its server's alone.
  if (path !== undefined && (code === 'EACCES' || code === 'EPERM' || code === 'EROFS'))
    return `${path} may not be used by this user (${code}): type the command as the user that owns it, or name another place.`
  if (error instanceof VaultError) return `The server does not start: ${error.message}.`
  if (isFull(error)) return `The disk of the database is full: ${message}. Make room on it, then try again.`
  if (code === 'ENOSPC' || code === 'EDQUOT')
    return `There is no room for ${path ?? 'a file'} (${code}). Make room on its disk, then try again.`
  if (databaseTroubleOf(error) === 'database_unavailable') return `The database cannot be used: ${message}`
  if (databaseTroubleOf(error) === 'transient_conflict')
    return `Somebody else uses what is to be changed in the database, such as a dump or an open transaction: ${message}. Try again.`
  // Class 3D: a database that does not exist, and may be made later.
  if (isWrongLogin(code) || (code !== undefined && /^3D[0-9A-Z]{3}$/.test(code)))
    return `The database refuses the connection: ${message}`
  return null
}

/** Says what is wrong in the words of the database, with its code where the words alone name no cause. */
function reasonOf(error: unknown): string {
  const { code, message, name } = (error instanceof NotBegunError ? error.cause : error) as NodeJS.ErrnoException
  if (name === 'KnexTimeoutError') return 'it gave no connection in time'
  const certificate = certificateTrouble(error)
  if (certificate !== null) return certificate
  return code?.startsWith('SQLITE_IOERR') === true ? `${message} (${code})` : message
}
