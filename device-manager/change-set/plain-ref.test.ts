import { expect, test } from 'vitest'
import { withoutRef } from './plain-ref.ts'

const id = 'a'.repeat(40)
const of = (...lines: string[]) => Buffer.from(lines.map((line) => `${line}\n`).join(''))
const head = '# pack-refs with: peeled fully-peeled sorted '

test('a packed ref is taken out with what it peels to, and nothing else', () => {
  const packed = of(
    head,
    `${id} refs/heads/main`,
    `${id} refs/svc/runs/r1/base`,
    `^${id}`,
    `${id} refs/tags/v1`,
    `^${id}`,
  )
  const rest = of(head, `${id} refs/heads/main`, `${id} refs/tags/v1`, `^${id}`)
  expect(withoutRef(packed, 'refs/svc/runs/r1/base')).toEqual(rest)
  expect(withoutRef(of(head, `${id} refs/svc/runs/r1/base`), 'refs/svc/runs/r1/base')).toEqual(of(head))
})

test('a list without the ref is left as it is', () => {
  for (const packed of [
    null,
    Buffer.alloc(0),
    of(head, `${id} refs/svc/runs/r1/base2`, `${id} x/refs/svc/runs/r1/base`),
  ])
    expect(withoutRef(packed, 'refs/svc/runs/r1/base')).toBe(null)
})
