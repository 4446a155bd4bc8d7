import { compileCache } from './compile-cache.ts'

/** For programs that a test starts with the environment it has itself. */
Object.assign(process.env, compileCache)
