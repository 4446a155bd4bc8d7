import { expect, test } from 'vitest'
import { strayDocComment } from './stray-doc-comments.ts'

test('a doc comment on an empty line, an import, another comment or the end of a block is found', () => {
  const wrong = [
    '/** About the file. */\n\nconst a = 1\n',
    "/**\n * About the file.\n */\nimport a from 'a'\n",
    '/** One. */\n/** Two. */\nconst a = 1\n',
    '/** One. */\n// Two.\nconst a = 1\n',
    'const a = {\n  b: 1,\n  /** No c. */\n}\n',
    '/** The last words. */\n',
    '/** The last words. */',
  ]
  expect(wrong.map(strayDocComment)).toEqual([0, 0, 0, 0, 2, 0, 0])
})

test('a doc comment on a declaration, a member or a word to the linter is not, nor is another comment', () => {
  const right = [
    '/** What a is. */\nconst a = 1\n',
    '/**\n * What a is.\n */\nexport function a() {}\n',
    'interface A {\n  /** What b is. */\n  b: string\n}\n',
    '/** What a is. */\n// oxlint-disable-next-line no-control-regex\nconst a = /\\u0000/\n',
    '/** What a is. */\n/* oxlint-disable typescript/no-explicit-any */\nfunction a() {}\n',
    '// About the file.\n\nconst a = 1\n',
    "const glob = '/**'\n\nconst all = '/* */'\n",
    'const a = 1 /** beside */\n\nconst b = 2\n',
  ]
  expect(right.map(strayDocComment)).toEqual(right.map(() => -1))
})
