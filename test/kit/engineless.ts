import { mkdtempSync } from 'node:fs'
import { join } from 'node:path'
import { inject } from 'vitest'
import type { RenewalDependencies } from '../../control-plane/resources/connections/renewal.ts'
import { TestServer } from './server.ts'

/** A server whose sandboxes are to run on an engine that is not there: it takes wakes for the cloud, and their runs wait. */
export const startEngineless = (settings: Record<string, string> = {}): Promise<TestServer> => {
  // It goes with the databases, and is of this server alone: the sockets of brokers lie below it.
  const data = mkdtempSync(join(inject('databases').folder, 'c-'))
  const none = join(data, 'no-engine')
  return TestServer.start({
    settings: { SVC_DATA_DIR: data, SVC_SANDBOX: 'docker', SVC_SANDBOX_SOCKET: none, ...settings },
  })
}

/** What permits of a server's sandboxes are made of. */
export const sharedOf = (server: TestServer) =>
  (server.plane as unknown as { shared: Pick<RenewalDependencies, 'vault' | 'services' | 'outbound' | 'renewals'> })
    .shared
