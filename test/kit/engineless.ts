import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { TestServer } from './server.ts'

/** A server whose sandboxes are to run on an engine that is not there: it takes wakes for the cloud, and their runs wait. */
export const startEngineless = (settings: Record<string, string> = {}): Promise<TestServer> => {
  // A short path: the sockets of brokers lie below it.
  const data = mkdtempSync(join(tmpdir(), 'svc-c-'))
  const none = join(data, 'no-engine')
  return TestServer.start({
    settings: { SVC_DATA_DIR: data, SVC_SANDBOX: 'docker', SVC_SANDBOX_SOCKET: none, ...settings },
  })
}
