# C unit tests: one program for each file of tests/. The library's own sources are in an archive,
# from which a test gets those that it uses. The hooks stay out: a test program would call them
# instead of the real functions.
set(LOCKTOP_UNIT_SOURCES ${LOCKTOP_SOURCES})
list(FILTER LOCKTOP_UNIT_SOURCES EXCLUDE REGEX "/src/interpose/")
foreach(source annotate checkers fast_mutex next_definition process profile real second_attempt)
  list(APPEND LOCKTOP_UNIT_SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/src/interpose/${source}.c)
endforeach()
# The parts of the reader that keep pointers or fold forged numbers, so that sanitizers see them.
foreach(source cells simulated_cpus simulated_locks simulator thread_heap)
  list(APPEND LOCKTOP_UNIT_SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/reader/${source}.c)
endforeach()
# These tests do not watch their own process. In the others the watch begins in interpose/process.c,
# which the linker takes from the archive for the hook _Fork().
set(LOCKTOP_UNWATCHED_TESTS arena cells fast_mutex msgpack settings simulator
                            stale_files)

set(LOCKTOP_TEST_FLAGS ${LOCKTOP_WARNINGS} -fno-omit-frame-pointer -fexceptions)
if(LOCKTOP_SANITIZE)
  list(APPEND LOCKTOP_TEST_FLAGS -fsanitize=${LOCKTOP_SANITIZE} -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${LOCKTOP_SANITIZE})
endif()

if(LOCKTOP_UNIT_SOURCES)
  add_library(locktop-unit STATIC ${LOCKTOP_UNIT_SOURCES})
  target_include_directories(locktop-unit PUBLIC include src reader)
  target_compile_options(locktop-unit PRIVATE ${LOCKTOP_TEST_FLAGS})
  foreach(source ${LOCKTOP_TEST_SOURCES})
    get_filename_component(name ${source} NAME_WE)
    add_executable(unit-${name} ${source})
    target_compile_options(unit-${name} PRIVATE ${LOCKTOP_TEST_FLAGS})
    target_link_libraries(unit-${name} PRIVATE locktop-unit)
    if(NOT name IN_LIST LOCKTOP_UNWATCHED_TESTS)
      target_link_options(unit-${name} PRIVATE -Wl,--undefined=_Fork)
    endif()
    add_test(NAME ${name} COMMAND unit-${name})
    set_tests_properties(${name} PROPERTIES TIMEOUT 120)
  endforeach()
endif()
