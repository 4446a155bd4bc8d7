import { expect, test } from 'vitest'
import { watchedFolders } from '../../shared/device/folder-check.ts'
import type { InspectedFolder } from '../folders/check.ts'
import { Patience } from '../watch/patience.ts'
import { ServedFolders } from './served-folders.ts'

function make() {
  const watched = new Map<string, readonly string[]>()
  const again: string[] = []
  const sleeps: Promise<void>[] = []
  const looks = new Map<string, () => Promise<InspectedFolder>>()
  const folders = new ServedFolders({
    patience: new Patience({ sleep: () => sleeps.pop() ?? new Promise(() => undefined) }, 5_000),
    watch: {
      set: (subject, paths) => void (paths === null ? watched.delete(subject) : watched.set(subject, paths)),
      recheck: (subject) => void again.push(subject),
    },
    inspect: (rootPath) => looks.get(rootPath)?.() ?? Promise.reject(new Error('disk on fire')),
  })
  const found = (branch: string | null, gitDir: string | null) => async () => ({
    facts: { state: 'ok' as const, branch },
    gitDir,
    isUnsure: false,
  })
  return { folders, watched, looks, found, again, sleeps }
}

test('what a look finds is told, and says what is watched further', async () => {
  const { folders, watched, looks, found } = make()
  folders.set([{ shortId: 'fs_1', rootPath: '/r/docs' }])
  expect([folders.facts(), watched.get('fs_1')]).toEqual([{}, ['/r/docs', '/r/docs/.git']])
  looks.set('/r/docs', found('main', '/r/.git'))
  await folders.inspect(['fs_1', 'fs_unknown'])
  expect(folders.facts()).toEqual({ fs_1: { state: 'ok', branch: 'main' } })
  expect(watched.get('fs_1')).toContain('/r/.git/HEAD')
})

test('what could not be looked at stays as it was found, and is looked at again', async () => {
  const { folders, watched, looks, found, again, sleeps } = make()
  folders.set([{ shortId: 'fs_1', rootPath: '/r' }])
  const unsure = async () => ({ facts: { state: 'ok' as const, branch: null }, gitDir: null, isUnsure: true })
  looks.set('/r', unsure)
  await folders.inspect()
  expect(folders.facts()).toEqual({ fs_1: { state: 'ok', branch: null } })
  looks.set('/r', found('main', '/r/.git'))
  await folders.inspect()
  looks.set('/r', unsure)
  await folders.inspect()
  expect(folders.facts()).toEqual({ fs_1: { state: 'ok', branch: 'main' } })
  expect(watched.get('fs_1')).toContain('/r/.git/HEAD')
  looks.set('/r', () => Promise.reject(new Error('no file left')))
  await folders.inspect()
  expect(folders.facts()).toEqual({ fs_1: { state: 'ok', branch: 'main' } })
  expect(again).toEqual(['fs_1', 'fs_1', 'fs_1'])
  sleeps.push(Promise.resolve())
  looks.set('/r', () => new Promise(() => undefined))
  await folders.inspect()
  expect(folders.facts()).toEqual({ fs_1: { state: 'not_permitted', branch: null } })
})

test('a folder that goes, or comes to lie elsewhere, leaves nothing behind', async () => {
  const { folders, watched, looks, found } = make()
  looks.set('/a', found('main', null))
  folders.set([{ shortId: 'fs_1', rootPath: '/a' }])
  await folders.inspect()
  const late = Promise.withResolvers<InspectedFolder>()
  looks.set('/a', () => late.promise)
  const looking = folders.inspect()
  folders.set([{ shortId: 'fs_1', rootPath: '/b' }])
  late.resolve({ facts: { state: 'ok', branch: 'late' }, gitDir: null, isUnsure: false })
  await looking
  expect([folders.facts(), watched.get('fs_1')]).toEqual([{}, ['/b', '/b/.git']])
  folders.set([])
  expect([folders.list(), watched.size]).toEqual([[], 0])
})

test('of too many the first are served', () => {
  const { folders, watched } = make()
  folders.set(Array.from({ length: 500 }, (_, index) => ({ shortId: `fs_${index}`, rootPath: `/${index}` })))
  expect([folders.list().length, watched.size]).toEqual([watchedFolders, watchedFolders])
})
