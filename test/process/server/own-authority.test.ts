import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { get } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { databaseTroubleOf } from '../../../control-plane/db/dialect.ts'
import { StorageError } from '../../../control-plane/blobs/place.ts'
import { certificateTrouble } from '../../../shared/lib/certificate-trouble.ts'
import { secondLoopbackCertificate, startServer } from '../../kit/hostile-server.ts'
import { programFile } from '../../kit/program-file.ts'

// What a person reads who meets a certificate of an authority of their company, or of a proxy that reads TLS.

const says =
  /its certificate is of an authority that is not known here \(DEPTH_ZERO_SELF_SIGNED_CERT\).*NODE_EXTRA_CA_CERTS/

async function serve(): Promise<string> {
  const server = await startServer((_, response) => response.end('{}'), {
    tls: secondLoopbackCertificate(),
    host: '127.0.0.2',
  })
  onTestFinished(() => server.close())
  return `https://127.0.0.2:${server.port}`
}

test('the error of a request says what is wrong with the certificate, and no other error does', async () => {
  const url = await serve()
  const failure = await fetch(url).catch((error: unknown) => error)
  expect(certificateTrouble(failure)).toMatch(says)
  expect(new StorageError('s3', failure).message).toMatch(says)
  expect(databaseTroubleOf((failure as Error).cause)).toBe('database_unavailable')
  const { cert: ca } = secondLoopbackCertificate()
  const misnamed = await new Promise((resolve) => get(url, { ca, servername: 'b.test' }).on('error', resolve))
  expect(certificateTrouble(misnamed)).toBe('its certificate is for another name (ERR_TLS_CERT_ALTNAME_INVALID)')
  const nobody = await fetch('http://127.0.0.1:1/').catch((error: unknown) => error)
  expect(certificateTrouble(nobody)).toBeNull()
  const circle = new Error('round')
  circle.cause = circle
  expect(certificateTrouble(circle)).toBeNull()
})

test('svc says it', async () => {
  const home = mkdtempSync(join(tmpdir(), 'svc-authority-'))
  onTestFinished(() => rmSync(home, { recursive: true, force: true }))
  const url = await serve()
  const args = [programFile('cli'), 'login', '--server', url, '--token', 'svc_pat_0123456789']
  const { code, stderr } = await new Promise<{ code: unknown; stderr: string }>((resolve) => {
    const env = { PATH: process.env['PATH'], HOME: home, TMPDIR: home }
    execFile(process.execPath, args, { env }, (error, _, stderr) => resolve({ code: error?.code, stderr }))
  })
  expect(stderr.replaceAll(/\s+/g, ' ')).toMatch(says)
  expect(code).not.toBe(0)
})
