import { array, assert, nat, property } from 'fast-check'
import { expect, test } from 'vitest'
import { PatchReader, type PatchedFile } from './patch.ts'

const zero = '0'.repeat(40)
const raw = [
  `:100644 100644 ${'a'.repeat(40)} ${zero} M\0changed\0`,
  `:100644 100644 ${'b'.repeat(40)} ${zero} R090\0old\nname\0new\0`,
  `:120000 100644 ${'c'.repeat(40)} ${zero} T\0turned\0`,
  `:000000 100644 ${zero} ${zero} A\0image\0`,
].join('')
const sections = [
  'diff --git a/changed b/changed\n--- a/changed\n+++ b/changed\n@@ -1,2 +1,3 @@\n-diff --git\n+++ x\n+-- y\n same\n',
  'diff --git "a/old\\nname" b/new\nsimilarity index 90%\nrename from "old\\nname"\nrename to new\n@@ -1 +1 @@\n-a\n+b\n',
  'diff --git a/turned b/turned\ndeleted file mode 120000\n@@ -1 +0,0 @@\n-x\n\\ No newline at end of file\n',
  'diff --git a/turned b/turned\nnew file mode 100644\n@@ -0,0 +1 @@\n+y\n',
  'diff --git a/image b/image\nnew file mode 100644\nBinary files /dev/null and b/image differ\n',
]
const output = Buffer.from(`${raw}\0${sections.join('')}`)
const roomy = { filePatchBytes: 10_000, diffBytes: 10_000 }

function read(bytes: Buffer, cuts: readonly number[], limits = roomy): PatchedFile[] | null {
  const reader = new PatchReader(limits)
  let from = 0
  for (const cut of cuts.toSorted((a, b) => a - b)) {
    reader.push(bytes.subarray(from, cut))
    from = cut
  }
  reader.push(bytes.subarray(from))
  return reader.end()
}

test('files, their counts and their parts of the patch', () => {
  const files = read(output, [])!
  expect(
    files.map(({ letter, oldPath, path, additions, deletions, binary }) => [
      letter,
      oldPath,
      path,
      additions,
      deletions,
      binary,
    ]),
  ).toEqual([
    ['M', 'changed', 'changed', 2, 1, false],
    ['R', 'old\nname', 'new', 1, 1, false],
    ['T', 'turned', 'turned', 1, 1, false],
    ['A', 'image', 'image', 0, 0, true],
  ])
  expect(Buffer.concat(files.map((file) => file.patch!)).toString()).toBe(sections.join(''))
})

test('however the output is cut, the files are the same', () => {
  const whole = read(output, [])
  assert(
    property(array(nat({ max: output.length })), (cuts) => {
      expect(read(output, cuts)).toEqual(whole)
    }),
  )
  expect(
    read(
      output,
      Array.from({ length: output.length }, (_, at) => at),
    ),
  ).toEqual(whole)
})

test('output that ends anywhere too early is no answer, or lacks only content', () => {
  for (let end = 1; end < raw.length; end++) {
    const files = read(output.subarray(0, end), [])
    expect(files === null || files.length < 4).toBe(true)
  }
  expect(read(Buffer.from(`${raw}\0${sections.slice(1).join('')}`), [])).toBeNull()
  expect(read(Buffer.from(`${raw}\0${sections.join('')}${sections[0]}`), [])).toBeNull()
  expect(read(Buffer.alloc(0), [])).toEqual([])
})

test('a patch over the limit of a file is counted and dropped; one over the limit of all stops the reading', () => {
  const limit = sections[0]!.length - 1
  const files = read(output, [], { filePatchBytes: limit, diffBytes: 10_000 })!
  expect(files[0]).toMatchObject({ patch: null, additions: 2, deletions: 1 })
  const reader = new PatchReader({ filePatchBytes: 10_000, diffBytes: 50 })
  expect(reader.push(output)).toBe(false)
})

test('a patch that is no UTF-8 is told as such', () => {
  const bytes = Buffer.concat([
    Buffer.from(`:100644 100644 ${zero} ${zero} M\0f\0\0diff --git a/f b/f\n@@ -1 +1 @@\n+caf`),
    Buffer.from([0xe9, 10]),
  ])
  expect(read(bytes, [])).toMatchObject([{ patch: null, isText: false, additions: 1 }])
})
