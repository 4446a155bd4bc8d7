import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { unitsFrom } from './running.ts'

test('units of svc that start from a folder of versions are found, whether they run or not, and no others', () => {
  const units = mkdtempSync(join(tmpdir(), 'svc-units-'))
  onTestFinished(() => rmSync(units, { recursive: true, force: true }))
  const unit = (name: string, text: string) => writeFileSync(join(units, name), text)
  const server = (folder: string) => `[Service]\nExecStart="${folder}/current/node/bin/node" "main.js" "start"\n`
  unit('svc-device@ann.service', '[Service]\nExecStart="/opt/svc/current/node/bin/node" "main.js"\n')
  unit('svc-device@bob.service', '[Service]\nExecStart="/opt/svc-2/current/node/bin/node" "main.js"\n')
  unit('nginx.service', '[Service]\nExecStart="/opt/svc/current/nginx"\n')
  unit('svc-server.service', server('/opt/svc'))
  expect(unitsFrom('/opt/svc', units).toSorted()).toEqual(['svc-device@ann.service', 'svc-server.service'])
  unit('svc-server.service', server('/opt/other'))
  expect(unitsFrom('/opt/svc', units)).toEqual(['svc-device@ann.service'])
  expect(unitsFrom('/opt/svc', join(units, 'none'))).toEqual([])
  // As systemd writes such a path.
  unit('svc-device@bob.service', '[Service]\nExecStart="/opt/100%% svc/current/node/bin/node" "main.js"\n')
  expect(unitsFrom('/opt/100% svc', units)).toEqual(['svc-device@bob.service'])
})
