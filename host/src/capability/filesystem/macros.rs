//! What is the same for both editions of WASI: their types have the same names, and nothing else in
//! common.

/// How something is opened, by the flags of an edition.
macro_rules! opening {
    ($path_flags:expr, $open:expr, $flags:expr) => {{
        let synchronized = DescriptorFlags::FILE_INTEGRITY_SYNC
            | DescriptorFlags::DATA_INTEGRITY_SYNC
            | DescriptorFlags::REQUESTED_WRITE_SYNC;
        if $flags.intersects(synchronized) {
            return Err(ErrorCode::Unsupported.into());
        }
        let how = OpenMode {
            read: $flags.contains(DescriptorFlags::READ),
            write: $flags.contains(DescriptorFlags::WRITE),
            create: $open.contains(OpenFlags::CREATE),
            exclusive: $open.contains(OpenFlags::EXCLUSIVE),
            truncate: $open.contains(OpenFlags::TRUNCATE),
            folder: $open.contains(OpenFlags::DIRECTORY),
            follow: $path_flags.contains(PathFlags::SYMLINK_FOLLOW),
        };
        if !how.is_sound() {
            return Err(ErrorCode::Invalid.into());
        }
        how
    }};
}

/// What a type of file is called in an edition, which has a word of its own for the last.
macro_rules! descriptor_type {
    ($file_type:expr, $unknown:expr) => {
        match $file_type {
            FileType::RegularFile => DescriptorType::RegularFile,
            FileType::Directory => DescriptorType::Directory,
            FileType::Symlink => DescriptorType::SymbolicLink,
            FileType::Fifo => DescriptorType::Fifo,
            FileType::Socket => DescriptorType::Socket,
            FileType::CharacterDevice => DescriptorType::CharacterDevice,
            FileType::BlockDevice => DescriptorType::BlockDevice,
            FileType::Unknown => $unknown,
        }
    };
}
