# Called by CPack on the files of the Debian package before it packs them: manual pages and changelogs compressed, as Debian
# asks for, and one time for all files.
set(root ${CPACK_TEMPORARY_INSTALL_DIRECTORY}/usr)
set(documentation ${root}/share/doc/tprimat)
set(epoch $ENV{SOURCE_DATE_EPOCH})
if(NOT epoch)
  string(TIMESTAMP epoch "%s" UTC)
endif()
execute_process(COMMAND date -R -u -d @${epoch} OUTPUT_VARIABLE date OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
file(RENAME ${documentation}/CHANGELOG.md ${documentation}/changelog)
file(WRITE ${documentation}/changelog.Debian "tprimat (${CPACK_PACKAGE_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE}) unstable; urgency=medium\n\n"
  "  * Packed by the project itself: changelog.gz has the changes.\n\n -- ${CPACK_PACKAGE_CONTACT}  ${date}\n")
file(GLOB pages ${root}/share/man/man1/*.1)
execute_process(COMMAND gzip -9nf ${pages} ${documentation}/changelog ${documentation}/changelog.Debian COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND find ${CPACK_TEMPORARY_INSTALL_DIRECTORY} -exec touch -h -d @${epoch} "{}" + COMMAND_ERROR_IS_FATAL ANY)
