import { resolve } from 'node:path'
import { expect, test } from 'vitest'
import { demandPrefix, thisCopy, type ThisCopy } from './this-copy.ts'

const checkout = resolve(import.meta.dirname, '../..')
const saidOf = (copy: ThisCopy, act: 'upgrade' | 'uninstall') => {
  try {
    return demandPrefix(copy, act)
  } catch (error) {
    const { message, remediation } = error as Error & { remediation?: string }
    return [message, remediation]
  }
}

test('what somebody else takes care of says where it lies and what to type there', () => {
  const here = thisCopy()
  const released = { ...here, lib: `${checkout}/.cache/releases/0123abc`, folder: `${checkout}/.cache/releases` }
  for (const copy of [here, released])
    expect(saidOf(copy, 'uninstall')).toEqual([
      `This svc runs from a checkout (${checkout}).`,
      'Where it runs as a service, type `svc device uninstall-service` first. Then remove the checkout.',
    ])
  const byNpm: ThisCopy = { ...here, how: 'npm', folder: '/usr/lib/node_modules/svc' }
  expect(saidOf(byNpm, 'upgrade')).toEqual([
    'This svc was installed by npm (/usr/lib/node_modules/svc).',
    'Type `npm install -g ./svc-VERSION.tgz`.',
  ])
  expect(saidOf({ ...here, how: 'versions', prefix: '/opt/svc' }, 'upgrade')).toBe('/opt/svc')
})
